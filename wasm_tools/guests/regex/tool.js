// regex: finds or replaces by a regular expression, as a component of the world portside:tool/sandboxed-tool.

const SCHEMA = {
  type: "object",
  properties: {
    pattern: {
      type: "string",
      minLength: 1,
      maxLength: 2000,
      description: "A regular expression in JavaScript's syntax with the flag u: (?<name>...), (?<=...), \\p{L}",
    },
    text: { type: "string", description: "The text to look through" },
    flags: {
      type: "string",
      pattern: "^i?m?s?$",
      default: "",
      description: "i ignores case, m lets ^ and $ match at every line, s lets . match line ends; in this order",
    },
    replacement: {
      type: "string",
      description: "Answer the text with every match replaced by this; $1, $<name> and $& stand for what matched",
    },
    limit: { type: "integer", minimum: 1, maximum: 1000, default: 100, description: "Matches to list at most" },
  },
  required: ["pattern", "text"],
  additionalProperties: false,
};
const DESCRIPTION =
  "Finds every match of a regular expression in a text, with line and column (both from 1) and groups, or replaces them all. " +
  'Answers {"count": of all matches, "matches": [...]}, or {"count", "text"} when there is a replacement.';

export const tool = {
  execute({ params }) {
    const asked = JSON.parse(params);
    let pattern;
    try {
      pattern = new RegExp(asked.pattern, `gu${asked.flags ?? ""}`);
    } catch (problem) {
      return { error: `the pattern can't be read: ${problem.message}` };
    }
    const answer = asked.replacement === undefined ? found(pattern, asked) : replaced(pattern, asked);
    return { output: JSON.stringify(answer) };
  },
  schema: () => JSON.stringify(SCHEMA),
  description: () => DESCRIPTION,
};

function replaced(pattern, { text, replacement }) {
  let count = 0;
  for (const _ of text.matchAll(pattern)) count++;
  return { count, text: text.replace(pattern, replacement) };
}

function found(pattern, { text, limit = 100 }) {
  const matches = [];
  const place = new Place(text);
  let count = 0;
  for (const match of text.matchAll(pattern)) {
    count++;
    if (matches.length === limit) continue;
    const listed = { match: match[0], ...place.of(match.index) };
    if (match.length > 1) listed.groups = match.slice(1).map((group) => group ?? null);
    if (match.groups) listed.named = { ...match.groups };
    matches.push(listed);
  }
  return { count, matches };
}

// Lines and columns of places that come in ascending order; each part of the text is walked once.
class Place {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.line = 1;
    this.column = 1;
  }

  of(index) {
    for (const character of this.text.slice(this.at, index)) {
      this.line += character === "\n" ? 1 : 0;
      this.column = character === "\n" ? 1 : this.column + 1;
    }
    this.at = index;
    return { line: this.line, column: this.column };
  }
}
