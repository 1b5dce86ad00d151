"""http_get: a page's readable text, as a component of the world portside:tool/sandboxed-tool."""

import json
from html.parser import HTMLParser
from urllib.parse import urljoin

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports import tool
from wit_world.imports import host

SCHEMA = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "pattern": "^https?://", "maxLength": 2000, "description": "Where the page is"},
        "max_chars": {
            "type": "integer",
            "minimum": 100,
            "maximum": 200_000,
            "default": 20_000,
            "description": "How much of the text is answered",
        },
        "links": {"type": "boolean", "default": False, "description": "Also list the links of the page"},
    },
    "required": ["url"],
    "additionalProperties": False,
}
DESCRIPTION = (
    "Reads a web page and answers its readable text: title, headings, paragraphs and lists of an HTML page, "
    "anything else that is text as it is. It does not run scripts."
)
UNREAD = {"script", "style", "noscript", "template", "svg", "iframe", "nav", "footer"}
BLOCKS = {
    *("p", "div", "section", "article", "main", "header", "table", "tr", "ul", "ol", "pre", "blockquote", "br"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "li", "dt", "dd", "figure", "hr"),
}


class Failed(Exception):
    """There is no text to answer; the message says why."""


class Tool(exports.Tool):
    """The exported interface."""

    def execute(self, req: tool.Request) -> tool.Response:
        """Read one page; what goes wrong on the way is an error in words."""
        try:
            return tool.Response(output=read(json.loads(req.params)), error=None)
        except Failed as failure:
            return tool.Response(output=None, error=str(failure))

    def schema(self) -> str:
        """The parameters."""
        return json.dumps(SCHEMA)

    def description(self) -> str:
        """For the model."""
        return DESCRIPTION


def read(params):
    """The page's text, cut where it was asked to."""
    url = params["url"]
    accept = ("Accept", "text/html, text/plain;q=0.9, */*;q=0.5")
    try:
        response = host.http_request("GET", url, [accept, ("User-Agent", "portside-http-get/1")], None, None)
    except Err as refusal:
        raise Failed(refusal.value) from None
    headers = dict(response.headers)
    if headers.get("x-portside-body") == "base64":
        raise Failed(f"{url} is no text but {headers.get('content-type', 'of an unknown type')}")
    text, links = response.body, []
    if "html" in headers.get("content-type", "") or text.lstrip()[:9].lower() in {"<!doctype", "<html"}:
        page = Page(url)
        page.feed(text)
        page.close()
        text, links = page.text(), page.links
    if response.status >= 400:
        raise Failed(f"{url} answered {response.status}: {text.strip()[:500]}")
    limit = params.get("max_chars", 20_000)
    shown = text if len(text) <= limit else f"{text[:limit]}\n[cut: {len(text):,} characters in all]"
    if params.get("links") and links:
        shown += "\n\nLinks:\n" + "\n".join(f"- {label or target}: {target}" for target, label in links[:200])
    return shown


class Page(HTMLParser):
    """Collects what a person would read."""

    def __init__(self, url):
        super().__init__(convert_charrefs=True)
        self.links = []
        self._url = url
        self._parts = []
        self._unread = 0
        self._preformatted = 0
        self._link = None

    def handle_starttag(self, tag, attrs):
        """Open a tag."""
        if tag in UNREAD:
            self._unread += 1
        elif tag in BLOCKS:
            self._parts.append("\n" + ("#" * int(tag[1]) + " " if tag[0] == "h" and tag[1:].isdigit() else ""))
            self._parts.append("- " if tag == "li" else "")
            self._preformatted += tag == "pre"
        elif tag in {"td", "th"}:
            self._parts.append(" | ")
        elif tag == "a":
            self._link = (dict(attrs).get("href"), len(self._parts))

    def handle_endtag(self, tag):
        """Close a tag."""
        if tag in UNREAD:
            self._unread = max(0, self._unread - 1)
        elif tag in BLOCKS:
            self._parts.append("\n")
            self._preformatted -= tag == "pre" and self._preformatted > 0
        elif tag == "a" and self._link is not None:
            target, at = self._link
            if target and not target.startswith(("#", "javascript:")):
                self.links.append((urljoin(self._url, target), " ".join("".join(self._parts[at:]).split())))
            self._link = None

    def handle_data(self, data):
        """Take text, with its white space as a browser would show it."""
        if self._unread == 0:
            kept = data if self._preformatted else " ".join(f".{data}.".split())[1:-1]
            self._parts.append(kept)

    def text(self):
        """Everything, without runs of empty lines."""
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        lines = [line[1:] if line[:1] == " " and line[1:2] != " " else line for line in lines]
        kept = [line for at, line in enumerate(lines) if line or (at and lines[at - 1])]
        return "\n".join(kept).strip()
