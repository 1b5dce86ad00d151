//! @NAME@: how many days lie between two dates, as a component of the world portside:tool/sandboxed-tool.

#![crate_type = "cdylib"]

mod portside;

use portside::Json;

pub const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "start": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "description": "The first date, as YYYY-MM-DD"},
    "end": {
      "type": "string",
      "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
      "description": "The second date, as YYYY-MM-DD; today (UTC) when it is left out"
    },
    "unit": {
      "type": "string",
      "enum": ["days", "weekdays"],
      "default": "days",
      "description": "weekdays leaves Saturdays and Sundays out"
    }
  },
  "required": ["start"],
  "additionalProperties": false
}"#;
pub const DESCRIPTION: &str = "Counts the days from one date to another, and says on which weekday each falls. \
     The count is negative when the second date is the earlier one.";

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MS_PER_DAY: u64 = 86_400_000;

/// One call: an output, or an error in words that the model can act on. A panic is a crash of the tool.
pub fn execute(params: &Json) -> Result<String, String> {
    let start = day(params.text("start").ok_or("start is missing")?)?;
    let end = match params.text("end") {
        Some(text) => day(text)?,
        None => (portside::now_millis() / MS_PER_DAY) as i64,
    };
    let count = if params.text("unit") == Some("weekdays") { weekdays(start, end) } else { end - start };
    Ok(format!(
        r#"{{"count":{},"start":"{}","end":"{}"}}"#,
        count,
        WEEKDAYS[weekday(start)],
        WEEKDAYS[weekday(end)]
    ))
}

/// A date as days since 1970-01-01.
fn day(text: &str) -> Result<i64, String> {
    let wrong = || format!("there is no day {}; write dates as YYYY-MM-DD", text);
    let parts: Vec<i64> = text.split('-').filter_map(|part| part.parse().ok()).collect();
    match parts[..] {
        [year, month, date] if (1..=12).contains(&month) && date >= 1 && date <= days_in(year, month) => {
            Ok((1..month).map(|one| days_in(year, one)).sum::<i64>() + date - 1 + before(year) - before(1970))
        }
        _ => Err(wrong()),
    }
}

/// How many days the years before this one have, from the year 1 on.
fn before(year: i64) -> i64 {
    let full = year - 1;
    full * 365 + full.div_euclid(4) - full.div_euclid(100) + full.div_euclid(400)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Monday is 0; 1970-01-01 was a Thursday.
fn weekday(day: i64) -> usize {
    (day + 3).rem_euclid(7) as usize
}

/// How many days from Monday to Friday there are from one day up to another, which does not count.
fn weekdays(start: i64, end: i64) -> i64 {
    if end < start {
        return -weekdays(end, start);
    }
    let weeks = (end - start) / 7;
    weeks * 5 + (start + weeks * 7..end).filter(|&one| weekday(one) < 5).count() as i64
}
