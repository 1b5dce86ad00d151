// @NAME@: how many days lie between two dates, as a component of the world portside:tool/sandboxed-tool.

#include "portside.h"

#define DATE "{\"type\":\"string\",\"pattern\":\"^[0-9]{4}-[0-9]{2}-[0-9]{2}$\",\"description\":"

const char *const tool_schema =
    "{\"type\":\"object\",\"properties\":{"
    "\"start\":" DATE "\"The first date, as YYYY-MM-DD\"},"
    "\"end\":" DATE "\"The second date, as YYYY-MM-DD; today (UTC) when it is left out\"},"
    "\"unit\":{\"type\":\"string\",\"enum\":[\"days\",\"weekdays\"],\"default\":\"days\","
    "\"description\":\"weekdays leaves Saturdays and Sundays out\"}},"
    "\"required\":[\"start\"],\"additionalProperties\":false}";

const char *const tool_description =
    "Counts the days from one date to another, and says on which weekday each falls. "
    "The count is negative when the second date is the earlier one.";

static const char *const WEEKDAYS[] = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};
#define MS_PER_DAY 86400000u

static int days_in(int year, int month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// How many days the years before this one have, from the year 1 on.
static int before(int year) {
  int full = year - 1;
  return full * 365 + full / 4 - full / 100 + full / 400;
}

static int number(text digits) {
  int value = 0;
  for (u32 i = 0; i < digits.len; i++) value = value * 10 + (digits.at[i] - '0');
  return value;
}

// A date as days since 1970-01-01. What is wrong with it is said to the model.
static int day(text date) {
  int right = date.len == 10 && date.at[4] == '-' && date.at[7] == '-';
  for (u32 i = 0; right && i < 10; i++) right = i == 4 || i == 7 || (date.at[i] >= '0' && date.at[i] <= '9');
  int year = 0, month = 0, of_month = 0;
  if (right) {
    year = number((text){date.at, 4});
    month = number((text){date.at + 5, 2});
    of_month = number((text){date.at + 8, 2});
  }
  if (year < 1 || month < 1 || month > 12 || of_month < 1 || of_month > days_in(year, month)) {
    fail(literal("there is no day "));
    fail(date);
    fail(literal("; write dates as YYYY-MM-DD"));
    return 0;
  }
  int days = before(year) - before(1970) + of_month - 1;
  for (int one = 1; one < month; one++) days += days_in(year, one);
  return days;
}

// Monday is 0; 1970-01-01 was a Thursday.
static int weekday(int number_of_day) { return ((number_of_day + 3) % 7 + 7) % 7; }

// How many days from Monday to Friday there are from one day up to another, which does not count.
static int weekdays(int start, int end) {
  if (end < start) return -weekdays(end, start);
  int weeks = (end - start) / 7, count = weeks * 5;
  for (int one = start + weeks * 7; one < end; one++) count += weekday(one) < 5;
  return count;
}

void tool_execute(text params) {
  text start_text, end_text, unit;
  if (!json_text(params, "start", &start_text)) {
    fail(literal("start is missing"));
    return;
  }
  int start = day(start_text);
  int end = json_text(params, "end", &end_text) ? day(end_text) : (int)(now_millis() / MS_PER_DAY);
  int only_weekdays = json_text(params, "unit", &unit) && same(unit, "weekdays");
  say(literal("{\"count\":"));
  say_number(only_weekdays ? weekdays(start, end) : end - start);
  say(literal(",\"start\":\""));
  say(literal(WEEKDAYS[weekday(start)]));
  say(literal("\",\"end\":\""));
  say(literal(WEEKDAYS[weekday(end)]));
  say(literal("\"}"));
}
