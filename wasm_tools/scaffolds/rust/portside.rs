//! Between the tool and its host: the canonical ABI of `portside:tool`, written by hand, and as much of JSON as
//! parameters need. Nothing here is about this tool.

use std::alloc::{alloc, realloc, Layout};

#[link(wasm_import_module = "portside:tool/host@1.0.0")]
extern "C" {
    #[link_name = "log"]
    fn host_log(level: u32, at: *const u8, len: usize);
    #[link_name = "now-millis"]
    fn host_now_millis() -> u64;
}

/// One line for the operator's log, at the level info.
#[allow(dead_code)]
pub fn log(line: &str) {
    unsafe { host_log(2, line.as_ptr(), line.len()) }
}

/// Milliseconds since 1970, UTC.
#[allow(dead_code)]
pub fn now_millis() -> u64 {
    unsafe { host_now_millis() }
}

// ---- the canonical ABI ------------------------------------------------------------------------------------

#[repr(C)]
pub struct Text(*const u8, usize);

#[repr(C)]
pub struct OptionText {
    some: u32,
    text: Text,
}

#[repr(C)]
pub struct Response {
    output: OptionText,
    error: OptionText,
}

/// Text that outlives the call; the host copies it, and the instance is dropped after the call.
fn given(text: String) -> Text {
    let bytes = text.into_bytes().leak();
    Text(bytes.as_ptr(), bytes.len())
}

fn option(text: Option<String>) -> OptionText {
    let some = text.is_some() as u32;
    OptionText { some, text: given(text.unwrap_or_default()) }
}

#[no_mangle]
pub unsafe extern "C" fn cabi_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    if size == 0 {
        return align as *mut u8;
    }
    let fresh = if old_size == 0 {
        alloc(Layout::from_size_align_unchecked(size, align))
    } else {
        realloc(old, Layout::from_size_align_unchecked(old_size, align), size)
    };
    if fresh.is_null() {
        core::arch::wasm32::unreachable()
    }
    fresh
}

#[export_name = "portside:tool/tool@1.0.0#execute"]
pub unsafe extern "C" fn execute(
    params: *mut u8,
    len: usize,
    _has_context: u32,
    _context: *mut u8,
    _context_len: usize,
) -> *const Response {
    let params = String::from_utf8_lossy(std::slice::from_raw_parts(params, len)).into_owned();
    let answer = Json::read(&params).and_then(|params| crate::execute(&params));
    let (output, error) = match answer {
        Ok(text) => (Some(text), None),
        Err(text) => (None, Some(text)),
    };
    Box::into_raw(Box::new(Response { output: option(output), error: option(error) }))
}

#[export_name = "portside:tool/tool@1.0.0#schema"]
pub extern "C" fn schema() -> *const Text {
    Box::into_raw(Box::new(given(crate::SCHEMA.to_string())))
}

#[export_name = "portside:tool/tool@1.0.0#description"]
pub extern "C" fn description() -> *const Text {
    Box::into_raw(Box::new(given(crate::DESCRIPTION.to_string())))
}

// ---- JSON -------------------------------------------------------------------------------------------------

#[allow(dead_code)]
pub enum Json {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

#[allow(dead_code)]
impl Json {
    /// Read a text that is one JSON value.
    pub fn read(text: &str) -> Result<Json, String> {
        let mut reader = Reader { rest: text.chars().peekable() };
        reader.value()
    }

    /// A member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A member of an object that is a text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key) {
            Some(Json::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// A member of an object that is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key) {
            Some(Json::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

/// A text as JSON writes it, with its quotes.
#[allow(dead_code)]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => out.extend(['\\', one]),
            '\u{0}'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", one as u32)),
            _ => out.push(one),
        }
    }
    out.push('"');
    out
}

struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json, String> {
        match self.next_token() {
            Some('{') => self.object(),
            Some('[') => self.list(),
            Some('"') => Ok(Json::Text(self.string()?)),
            Some(_) => self.word(),
            None => Err(self.broken()),
        }
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut members = Vec::new();
        self.rest.next();
        while self.next_token() != Some('}') {
            let key = self.string()?;
            self.expect(':')?;
            members.push((key, self.value()?));
            if self.next_token() == Some(',') {
                self.rest.next();
            }
        }
        self.rest.next();
        Ok(Json::Object(members))
    }

    fn list(&mut self) -> Result<Json, String> {
        let mut items = Vec::new();
        self.rest.next();
        while self.next_token() != Some(']') {
            items.push(self.value()?);
            if self.next_token() == Some(',') {
                self.rest.next();
            }
        }
        self.rest.next();
        Ok(Json::List(items))
    }

    fn string(&mut self) -> Result<String, String> {
        self.expect('"')?;
        let mut units: Vec<u16> = Vec::new();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(String::from_utf16_lossy(&units)),
                Some('\\') => units.push(self.escape()?),
                Some(one) => units.extend_from_slice(one.encode_utf16(&mut [0; 2])),
                None => return Err(self.broken()),
            }
        }
    }

    fn escape(&mut self) -> Result<u16, String> {
        let unit = match self.rest.next() {
            Some('u') => {
                let digits: String = self.rest.by_ref().take(4).collect();
                return u16::from_str_radix(&digits, 16).map_err(|_| self.broken());
            }
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(one @ ('"' | '\\' | '/')) => one,
            _ => return Err(self.broken()),
        };
        Ok(unit as u16)
    }

    fn word(&mut self) -> Result<Json, String> {
        let mut word = String::new();
        while let Some(one) = self.rest.next_if(|one| one.is_ascii_alphanumeric() || "+-.".contains(*one)) {
            word.push(one);
        }
        match word.as_str() {
            "null" => Ok(Json::Null),
            "true" | "false" => Ok(Json::Bool(word == "true")),
            _ => word.parse().map(Json::Number).map_err(|_| self.broken()),
        }
    }

    fn next_token(&mut self) -> Option<char> {
        while self.rest.next_if(|one| one.is_ascii_whitespace()).is_some() {}
        self.rest.peek().copied()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.next_token() == Some(wanted) {
            self.rest.next();
            return Ok(());
        }
        Err(self.broken())
    }

    fn broken(&self) -> String {
        String::from("the parameters are not JSON")
    }
}
