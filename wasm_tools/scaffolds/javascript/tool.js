// @NAME@: how many days lie between two dates, as a component of the world portside:tool/sandboxed-tool.

import { nowMillis } from "portside:tool/host@1.0.0";

const DATE = { type: "string", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" };
const SCHEMA = {
  type: "object",
  properties: {
    start: { ...DATE, description: "The first date, as YYYY-MM-DD" },
    end: { ...DATE, description: "The second date, as YYYY-MM-DD; today (UTC) when it is left out" },
    unit: {
      type: "string",
      enum: ["days", "weekdays"],
      default: "days",
      description: "weekdays leaves Saturdays and Sundays out",
    },
  },
  required: ["start"],
  additionalProperties: false,
};
const DESCRIPTION =
  "Counts the days from one date to another, and says on which weekday each falls. " +
  "The count is negative when the second date is the earlier one.";
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MS_PER_DAY = 86_400_000;

class NoSuchDay extends Error {} // the message is for the model

// What the host calls. An error that is not caught here ends the call as a crash of the tool.
export const tool = {
  execute({ params }) {
    try {
      return { output: JSON.stringify(answer(JSON.parse(params))) };
    } catch (problem) {
      if (problem instanceof NoSuchDay) return { error: problem.message };
      throw problem;
    }
  },
  schema: () => JSON.stringify(SCHEMA),
  description: () => DESCRIPTION,
};

function answer({ start, end, unit }) {
  const from = day(start);
  const to = end === undefined ? Math.floor(Number(nowMillis()) / MS_PER_DAY) : day(end);
  const count = unit === "weekdays" ? weekdays(from, to) : to - from;
  return { count, start: WEEKDAYS[weekday(from)], end: WEEKDAYS[weekday(to)] };
}

// A date as days since 1970-01-01.
function day(text) {
  const time = Date.parse(`${text}T00:00:00Z`);
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text) {
    throw new NoSuchDay(`there is no day ${text}; write dates as YYYY-MM-DD`);
  }
  return time / MS_PER_DAY;
}

// Monday is 0; 1970-01-01 was a Thursday.
function weekday(number) {
  return (((number + 3) % 7) + 7) % 7;
}

// How many days from Monday to Friday there are from one day up to another, which does not count.
function weekdays(from, to) {
  if (to < from) return -weekdays(to, from);
  const weeks = Math.floor((to - from) / 7);
  let count = weeks * 5;
  for (let one = from + weeks * 7; one < to; one++) count += weekday(one) < 5 ? 1 : 0;
  return count;
}
