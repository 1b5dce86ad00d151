// Between the tool and its host: memory and text without a C library, as much of JSON as flat parameters need, and the
// canonical ABI of portside:tool, written by hand. Nothing here is about this tool, which defines:

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { const u8 *at; u32 len; } text;

extern const char *const tool_schema;        // the JSON Schema of the parameters
extern const char *const tool_description;   // for the model
void tool_execute(text params);              // one call; it ends with what was said, or with why it failed

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("portside:tool/host@1.0.0"), import_name(name)))
#define UNUSED __attribute__((unused))

// ---- the host: a component imports only what it calls ---------------------------------------------------

IMPORT("log") void host_log(u32 level, const u8 *at, u32 len);   // 0 trace, 1 debug, 2 info, 3 warn, 4 error
IMPORT("now-millis") u64 now_millis(void);                       // since 1970, UTC

// ---- memory: every call gets a fresh instance, so it is only ever handed out ----------------------------

extern u8 __heap_base;
static u8 *heap;

static void *take(u32 size, u32 align) {
  if (!heap) heap = &__heap_base;
  u32 start = ((u32)heap + align - 1) & ~(align - 1), end = start + size;
  u32 have = (u32)__builtin_wasm_memory_size(0) << 16;
  if (end < start) __builtin_trap();
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535) >> 16) == (unsigned long)-1) __builtin_trap();
  heap = (u8 *)end;
  return (void *)start;
}

void *memcpy(void *to, const void *from, unsigned long n) {
  for (unsigned long i = 0; i < n; i++) ((u8 *)to)[i] = ((const u8 *)from)[i];
  return to;
}

void *memset(void *to, int byte, unsigned long n) {
  for (unsigned long i = 0; i < n; i++) ((u8 *)to)[i] = (u8)byte;
  return to;
}

// ---- text -----------------------------------------------------------------------------------------------

static text literal(const char *words) {
  u32 n = 0;
  while (words[n]) n++;
  return (text){(const u8 *)words, n};
}

UNUSED static int same(text one, const char *words) {
  text other = literal(words);
  if (one.len != other.len) return 0;
  for (u32 i = 0; i < one.len; i++) if (one.at[i] != other.at[i]) return 0;
  return 1;
}

typedef struct { u8 *at; u32 len, room; } growing;

static void append(growing *to, text more) {
  if (to->len + more.len > to->room) {
    u32 room = (to->len + more.len) * 2 + 64;
    u8 *larger = take(room, 1);
    memcpy(larger, to->at, to->len);
    to->at = larger;
    to->room = room;
  }
  memcpy(to->at + to->len, more.at, more.len);
  to->len += more.len;
}

static growing output, failure;

UNUSED static void say(text words) { append(&output, words); }       // a piece of the output
UNUSED static void fail(text words) { append(&failure, words); }     // a piece of the error; with any, there is no output

UNUSED static void say_number(long long value) {
  u8 digits[20];
  u32 n = 20;
  u64 left = value < 0 ? 0 - (u64)value : (u64)value;
  do { digits[--n] = (u8)('0' + left % 10); left /= 10; } while (left);
  if (value < 0) say(literal("-"));
  say((text){digits + n, 20 - n});
}

// ---- JSON: members of one object whose shape the host has checked ---------------------------------------

static u32 after_space(text json, u32 i) {
  while (i < json.len && json.at[i] <= ' ') i++;
  return i;
}

// Where the value ends that begins at i.
static u32 after_value(text json, u32 i) {
  u32 depth = 0;
  for (int in_string = 0; i < json.len; i++) {
    u8 c = json.at[i];
    if (in_string && c == '\\') i++;
    else if (c == '"') in_string = !in_string;
    else if (!in_string && (c == '{' || c == '[')) depth++;
    else if (!in_string && (c == ',' || c == '}' || c == ']')) {
      if (!depth) return i;
      if (c != ',') depth--;
    }
    if (!depth && !in_string && (c == '"' || c == '}' || c == ']')) return i + 1;
  }
  return i;
}

static u32 hex(text json, u32 i) {
  u32 value = 0;
  for (u32 end = i + 4; i < end; i++) {
    u8 c = i < json.len ? json.at[i] : '0';
    value = value * 16 + (u32)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return value;
}

static void append_character(growing *to, u32 code) {
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;   // half of a pair has no UTF-8
  u8 bytes[4] = {(u8)code};
  u32 n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (u32 i = n; n > 1 && i-- > 0; code >>= 6) bytes[i] = (u8)(i ? 0x80 | (code & 0x3f) : (0xf0 << (4 - n)) | code);
  append(to, (text){bytes, n});
}

// The text of the string that begins at i, with its escapes undone.
static text unescaped(text json, u32 i) {
  growing to = {0, 0, 0};
  for (i++; i < json.len && json.at[i] != '"'; i++) {
    u8 c = json.at[i];
    if (c != '\\') { append(&to, (text){json.at + i, 1}); continue; }
    c = ++i < json.len ? json.at[i] : 0;
    if (c != 'u') {
      append_character(&to, c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c == 'f' ? '\f' : c);
      continue;
    }
    u32 code = hex(json, i + 1), low = hex(json, i + 7);
    i += 4;
    if (code >= 0xd800 && code < 0xdc00 && i + 2 < json.len && json.at[i + 1] == '\\' && low >= 0xdc00 && low < 0xe000) {
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      i += 6;
    }
    append_character(&to, code);
  }
  return (text){to.at, to.len};
}

// The value of a member, as its JSON; 0 when there is none.
static int json_member(text json, const char *key, text *value) {
  u32 i = after_space(json, 0) + 1;   // past the brace
  while ((i = after_space(json, i)) < json.len && json.at[i] == '"') {
    text name = unescaped(json, i);
    i = after_space(json, after_value(json, i)) + 1;   // past the colon
    u32 start = after_space(json, i);
    i = after_value(json, start);
    if (same(name, key)) { *value = (text){json.at + start, i - start}; return 1; }
    i = after_space(json, i);
    if (i < json.len && json.at[i] == ',') i++;
  }
  return 0;
}

// The text of a member that is a string.
UNUSED static int json_text(text json, const char *key, text *value) {
  if (!json_member(json, key, value) || !value->len || value->at[0] != '"') return 0;
  *value = unescaped(*value, 0);
  return 1;
}

// ---- the canonical ABI ----------------------------------------------------------------------------------

typedef struct { u32 some; const u8 *at; u32 len; } option_text;
typedef struct { option_text output, error; } response;

EXPORT("cabi_realloc") void *cabi_realloc(void *old, u32 old_size, u32 align, u32 size) {
  void *fresh = take(size, align);
  if (old) memcpy(fresh, old, old_size < size ? old_size : size);
  return fresh;
}

EXPORT("portside:tool/tool@1.0.0#execute")
response *execute(const u8 *params, u32 len, u32 has_context UNUSED, const u8 *context UNUSED, u32 context_len UNUSED) {
  static response reply;
  tool_execute((text){params, len});
  if (failure.len) reply.error = (option_text){1, failure.at, failure.len};
  else reply.output = (option_text){1, output.at, output.len};
  return &reply;
}

EXPORT("portside:tool/tool@1.0.0#schema") text *schema(void) {
  static text answer;
  answer = literal(tool_schema);
  return &answer;
}

EXPORT("portside:tool/tool@1.0.0#description") text *description(void) {
  static text answer;
  answer = literal(tool_description);
  return &answer;
}
