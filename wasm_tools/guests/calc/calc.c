// calc: exact decimal arithmetic, as a component of the world portside:tool/sandboxed-tool.
//
// Freestanding: no libc and no generated bindings; the canonical ABI of this small world is written by
// hand at the end of the file. Every call gets a fresh instance, so memory is only ever handed out.

typedef unsigned char u8;
typedef unsigned int u32;

#define EXPORT(name) __attribute__((export_name(name)))
#define MAX_DIGITS 2000   // of one number, all in all
#define MAX_DEPTH 100     // of parentheses and signs
#define MAX_EXPONENT 100000

// ---- memory and text ---------------------------------------------------------------------------------

extern u8 __heap_base;
static u8 *free_from;

static void *take(u32 size, u32 align) {
  if (!free_from) free_from = &__heap_base;
  u32 start = ((u32)free_from + align - 1) & ~(align - 1), end = start + size;
  u32 have = (u32)__builtin_wasm_memory_size(0) << 16;
  if (end < start) __builtin_trap();
  if (end > have && __builtin_wasm_memory_grow(0, (end - have + 65535) >> 16) == (unsigned long)-1) __builtin_trap();
  free_from = (u8 *)end;
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

typedef struct { const u8 *at; u32 len; } text;

static text literal(const char *s) {
  u32 n = 0;
  while (s[n]) n++;
  return (text){(const u8 *)s, n};
}

static int same(text a, const char *word) {
  text b = literal(word);
  if (a.len != b.len) return 0;
  for (u32 i = 0; i < a.len; i++) if (a.at[i] != b.at[i]) return 0;
  return 1;
}

// ---- failure: the first reason stays ------------------------------------------------------------------

static text failure;      // len 0: none so far
static u32 failure_at;    // 1-based column in the expression; 0 is nowhere in particular

static void fail(const char *why, u32 column) {
  if (!failure.len) { failure = literal(why); failure_at = column; }
}

// ---- numbers: sign * digits * 10^-scale ---------------------------------------------------------------

typedef struct { u8 *digit; int count, scale, negative; } number;   // least significant digit first

static number blank(int count, int scale) {
  if (count > MAX_DIGITS) { fail("a number gets more than 2000 digits; use a smaller exponent or fewer digits", 0); count = 1; }
  number n = {take((u32)count, 1), count, scale, 0};
  memset(n.digit, 0, (unsigned long)count);
  return n;
}

static number trimmed(number n) {   // no leading zeros; zero has no sign
  while (n.count > 1 && !n.digit[n.count - 1]) n.count--;
  if (n.count == 1 && !n.digit[0]) n.negative = 0;
  return n;
}

static int is_zero(number n) { n = trimmed(n); return n.count == 1 && !n.digit[0]; }

static number small(u32 value) {
  number n = blank(10, 0);
  for (int i = 0; value; value /= 10) n.digit[i++] = (u8)(value % 10);
  return trimmed(n);
}

static number rescaled(number n, int scale) {   // the same value with more digits after the point
  number r = blank(n.count + scale - n.scale, scale);
  if (failure.len) return r;
  memcpy(r.digit + (scale - n.scale), n.digit, (unsigned long)n.count);
  r.negative = n.negative;
  return trimmed(r);
}

static int compare(number a, number b) {   // of the digits alone
  a = trimmed(a); b = trimmed(b);
  if (a.count != b.count) return a.count - b.count;
  for (int i = a.count - 1; i >= 0; i--) if (a.digit[i] != b.digit[i]) return a.digit[i] - b.digit[i];
  return 0;
}

static number add(number a, number b) {
  int scale = a.scale > b.scale ? a.scale : b.scale;
  a = rescaled(a, scale); b = rescaled(b, scale);
  if (a.negative != b.negative && compare(a, b) < 0) { number swap = a; a = b; b = swap; }
  int subtract = a.negative != b.negative, carry = 0;
  number r = blank((a.count > b.count ? a.count : b.count) + 1, scale);
  if (failure.len) return r;
  for (int i = 0; i < r.count; i++) {
    int x = i < a.count ? a.digit[i] : 0, y = i < b.count ? b.digit[i] : 0;
    int d = subtract ? x - y - carry : x + y + carry;
    carry = subtract ? d < 0 : d > 9;
    r.digit[i] = (u8)(subtract ? (d + 10) % 10 : d % 10);
  }
  r.negative = a.negative;
  return trimmed(r);
}

static number negated(number n) { n.negative = !n.negative; return trimmed(n); }

static number multiply(number a, number b) {
  number r = blank(a.count + b.count, a.scale + b.scale);
  if (failure.len) return r;
  for (int i = 0; i < a.count; i++) {
    int carry = 0;
    for (int j = 0; j < b.count || carry; j++) {
      int d = r.digit[i + j] + carry + (j < b.count ? a.digit[i] * b.digit[j] : 0);
      r.digit[i + j] = (u8)(d % 10);
      carry = d / 10;
    }
  }
  r.negative = a.negative != b.negative;
  return trimmed(r);
}

// The whole quotient of the digits of a and b, cut off; *rest is what remains of a.
static number long_division(number a, number b, number *rest) {
  number q = blank(a.count, 0), r = blank(b.count + 1, 0);
  if (failure.len) return q;
  for (int i = a.count - 1; i >= 0; i--) {
    for (int k = r.count - 1; k > 0; k--) r.digit[k] = r.digit[k - 1];
    r.digit[0] = a.digit[i];
    while (compare(r, b) >= 0) {
      int borrow = 0;
      for (int k = 0; k < r.count; k++) {
        int d = r.digit[k] - (k < b.count ? b.digit[k] : 0) - borrow;
        borrow = d < 0;
        r.digit[k] = (u8)((d + 10) % 10);
      }
      q.digit[i]++;
    }
  }
  *rest = r;
  return q;
}

// ---- rounding -----------------------------------------------------------------------------------------

enum rounding { HALF_EVEN, HALF_UP, DOWN };
static int result_scale;
static enum rounding result_rounding;
static int inexact;   // some result was rounded

static number stepped(number n) {   // the digits plus one
  number r = blank(n.count + 1, n.scale);
  if (failure.len) return r;
  int carry = 1;
  for (int i = 0; i < n.count; i++) { r.digit[i] = (u8)((n.digit[i] + carry) % 10); carry = n.digit[i] + carry > 9; }
  r.digit[n.count] = (u8)carry;
  r.negative = n.negative;
  return trimmed(r);
}

// Rounds q, of which rest/divisor was cut off.
static number round_off(number q, number rest, number divisor) {
  if (is_zero(rest)) return q;
  inexact = 1;
  number twice = add((number){rest.digit, rest.count, 0, 0}, (number){rest.digit, rest.count, 0, 0});
  int half = compare(twice, divisor), odd = q.digit[0] & 1;
  int up = result_rounding == DOWN ? 0 : half > 0 || (half == 0 && (result_rounding == HALF_UP || odd));
  return up ? stepped(q) : q;
}

static number power_of_ten(int n) { number r = blank(n + 1, 0); if (!failure.len) r.digit[n] = 1; return r; }

static number rounded(number n, int scale) {   // to at most `scale` digits after the point
  if (n.scale <= scale) return n;
  number rest, divisor = power_of_ten(n.scale - scale);
  number q = long_division(n, divisor, &rest);
  q.scale = scale; q.negative = n.negative;
  return trimmed(round_off(q, rest, divisor));
}

static number without_zeros(number n) {   // 1.500 -> 1.5
  n = trimmed(n);
  while (n.scale > 0 && !n.digit[0] && n.count > 1) { n.digit++; n.count--; n.scale--; }
  if (is_zero(n)) n.scale = 0;
  return n;
}

static number divide(number a, number b, u32 column) {
  if (is_zero(b)) { fail("division by zero", column); return a; }
  b = without_zeros(b);
  // As many digits of either as make a whole quotient of result_scale digits, so that it is rounded once.
  int more = result_scale - (a.scale - b.scale);
  if (more > 0) a = rescaled(a, a.scale + more); else b = rescaled(b, b.scale - more);
  if (failure.len) return a;
  number rest, q = long_division(a, b, &rest);
  q.scale = result_scale;
  q.negative = a.negative != b.negative;
  return trimmed(round_off(q, rest, b));
}

static number remainder_of(number a, number b, u32 column) {   // the sign is a's
  if (is_zero(b)) { fail("remainder of a division by zero", column); return a; }
  int scale = a.scale > b.scale ? a.scale : b.scale;
  a = rescaled(a, scale); b = rescaled(b, scale);
  if (failure.len) return a;
  number rest;
  long_division(a, b, &rest);
  rest.scale = scale; rest.negative = a.negative;
  return trimmed(rest);
}

static number power(number base, number exponent, u32 column) {
  exponent = without_zeros(exponent);
  if (exponent.scale > 0) { fail("an exponent has to be a whole number", column); return base; }
  u32 times = 0;
  for (int i = exponent.count - 1; i >= 0; i--) {
    times = times * 10 + exponent.digit[i];
    if (times > MAX_EXPONENT) { fail("an exponent is over 100000", column); return base; }
  }
  int inverse = exponent.negative;
  number r = small(1), square = without_zeros(base);
  for (u32 n = times; n && !failure.len; n >>= 1) {
    if (n & 1) r = without_zeros(multiply(r, square));
    if (n > 1) square = without_zeros(multiply(square, square));
  }
  return inverse ? divide(small(1), r, column) : r;
}

// ---- expressions --------------------------------------------------------------------------------------
//   sum := product (('+' | '-') product)*      product := factor (('*' | '/' | '%') factor)*
//   factor := ('+' | '-') factor | atom ('^' factor)?      atom := number | '(' sum ')'

static text source;
static u32 place;
static int depth;

static u8 peek(void) {
  while (place < source.len && (source.at[place] == ' ' || source.at[place] == '\t' || source.at[place] == '\n')) place++;
  return place < source.len ? source.at[place] : 0;
}

static number sum(void);

static number read_number(void) {
  u32 start = place, digits = 0, scale = 0, seen_point = 0;
  for (; place < source.len; place++) {
    u8 c = source.at[place];
    if (c >= '0' && c <= '9') { digits++; scale += seen_point; }
    else if (c == '.' && !seen_point) seen_point = 1;
    else if (c != '_') break;
  }
  if (!digits) { fail(start < source.len ? "expected a number, '(' or a sign here" : "the expression ends where a number was expected", start + 1); return small(0); }
  number n = blank((int)digits, (int)scale);
  if (failure.len) return n;
  for (u32 i = start, k = digits; i < place; i++) if (source.at[i] >= '0' && source.at[i] <= '9') n.digit[--k] = source.at[i] - '0';
  return trimmed(n);
}

static number factor(void) {
  u8 c = peek();
  if (failure.len) return small(0);
  if (depth >= MAX_DEPTH) { fail("more than 100 nested parentheses or signs", place + 1); return small(0); }
  depth++;
  number n;
  if (c == '+' || c == '-') {
    place++;
    n = factor();
    if (c == '-') n = negated(n);
  } else {
    if (c == '(') {
      u32 open = ++place;
      n = sum();
      if (peek() == ')') place++; else fail("this '(' is never closed", open);
    } else n = read_number();
    if (peek() == '^' && !failure.len) { u32 column = ++place; n = power(n, factor(), column); }
  }
  depth--;
  return n;
}

static number product(void) {
  number n = factor();
  for (u8 c = peek(); (c == '*' || c == '/' || c == '%') && !failure.len; c = peek()) {
    u32 column = ++place;
    number right = factor();
    if (failure.len) break;
    n = c == '*' ? multiply(n, right) : c == '/' ? divide(n, right, column) : remainder_of(n, right, column);
  }
  return n;
}

static number sum(void) {
  number n = product();
  for (u8 c = peek(); (c == '+' || c == '-') && !failure.len; c = peek()) {
    place++;
    number right = product();
    if (failure.len) break;
    n = add(n, c == '-' ? negated(right) : right);
  }
  return n;
}

// ---- the parameters: one flat JSON object, whose shape the host has checked ----------------------------

static text json;
static u32 cursor;

static u8 next_token(void) {
  while (cursor < json.len && json.at[cursor] <= ' ') cursor++;
  return cursor < json.len ? json.at[cursor] : 0;
}

static int read_hex(void) {
  int value = 0;
  for (int i = 0; i < 4; i++) {
    u8 c = ++cursor < json.len ? json.at[cursor] : 0;
    int d = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
    if (d < 0) return -1;
    value = value * 16 + d;
  }
  return value;
}

// A string with its escapes undone. No name or operator is beyond ASCII, so such characters become '?'.
static text read_string(void) {
  u8 *out = take(json.len, 1);
  u32 n = 0;
  for (cursor++; cursor < json.len && json.at[cursor] != '"'; cursor++) {
    int c = json.at[cursor];
    if (c == '\\') {
      c = ++cursor < json.len ? json.at[cursor] : 0;
      if (c == 'n') c = '\n'; else if (c == 't') c = '\t'; else if (c == 'u') c = read_hex();
    }
    out[n++] = c < 0 || c > 126 ? '?' : (u8)c;
  }
  cursor++;
  return (text){out, n};
}

static void read_params(void) {
  if (next_token() != '{') { fail("the parameters are not a JSON object", 0); return; }
  cursor++;
  while (next_token() == '"' && !failure.len) {
    text key = read_string();
    if (next_token() == ':') cursor++;
    if (next_token() == '"') {
      text value = read_string();
      if (same(key, "expression")) source = value;
      else if (same(key, "rounding")) result_rounding = same(value, "down") ? DOWN : same(value, "half_up") ? HALF_UP : HALF_EVEN;
      else fail("an unknown parameter; known are expression, scale and rounding", 0);
    } else {
      u32 value = 0;
      if (!same(key, "scale")) fail("a parameter is unknown or of the wrong type", 0);
      for (; cursor < json.len && json.at[cursor] >= '0' && json.at[cursor] <= '9' && value < 1000; cursor++) value = value * 10 + json.at[cursor] - '0';
      result_scale = value > 100 ? 100 : (int)value;
      while (cursor < json.len && json.at[cursor] != ',' && json.at[cursor] != '}') cursor++;   // 2.0 is 2
    }
    if (next_token() == ',') cursor++;
  }
  if (next_token() != '}') fail("the parameters are not the JSON object that the schema describes", 0);
}

// ---- answers ------------------------------------------------------------------------------------------

static u8 answer[MAX_DIGITS + 200];
static u32 written;

static void put(text t) { for (u32 i = 0; i < t.len && written < sizeof answer; i++) answer[written++] = t.at[i]; }

static void put_u32(u32 value) {
  number n = small(value);
  for (int i = n.count - 1; i >= 0; i--) answer[written++] = '0' + n.digit[i];
}

static void put_number(number n) {
  n = without_zeros(n);
  int whole = n.count - n.scale;
  if (n.negative) put(literal("-"));
  if (whole <= 0) put(literal("0"));
  for (int i = n.count - 1; i >= n.scale; i--) answer[written++] = '0' + n.digit[i];
  if (n.scale > 0) put(literal("."));
  for (int i = n.scale - 1; i >= 0; i--) answer[written++] = '0' + (i < n.count ? n.digit[i] : 0);
}

static void evaluate(void) {
  result_scale = 20;
  read_params();
  if (failure.len) return;
  number n = sum();
  if (!failure.len && peek()) fail("this does not belong here", place + 1);
  if (failure.len) return;
  n = rounded(n, result_scale);
  if (failure.len) return;
  put(literal("{\"result\":\""));
  put_number(n);
  put(literal(inexact ? "\",\"exact\":false}" : "\",\"exact\":true}"));
}

// ---- the canonical ABI of portside:tool/tool ----------------------------------------------------------

typedef struct { u32 some; const u8 *at; u32 len; } option_text;
typedef struct { option_text output, error; } response;

EXPORT("cabi_realloc") void *cabi_realloc(void *old, u32 old_size, u32 align, u32 size) {
  void *fresh = take(size, align);
  if (old) memcpy(fresh, old, old_size < size ? old_size : size);
  return fresh;
}

EXPORT("portside:tool/tool@1.0.0#execute")
response *execute(const u8 *params, u32 params_len, u32 has_context, const u8 *context, u32 context_len) {
  static response reply;
  json = (text){params, params_len};
  evaluate();
  if (failure.len) {
    written = 0;
    put(failure);
    if (failure_at) { put(literal(" (column ")); put_u32(failure_at); put(literal(" of the expression)")); }
  }
  option_text said = {1, answer, written}, nothing = {0, 0, 0};
  reply.output = failure.len ? nothing : said;
  reply.error = failure.len ? said : nothing;
  return &reply;
}

EXPORT("portside:tool/tool@1.0.0#schema") text *schema(void) {
  static text t;
  t = literal(
    "{\"type\":\"object\",\"properties\":{"
    "\"expression\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4000,"
      "\"description\":\"Decimal numbers, + - * / % ^ and parentheses, such as (0.1 + 0.2) * 3\"},"
    "\"scale\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":100,\"default\":20,"
      "\"description\":\"Digits after the decimal point that a division and the result keep\"},"
    "\"rounding\":{\"type\":\"string\",\"enum\":[\"half_even\",\"half_up\",\"down\"],\"default\":\"half_even\","
      "\"description\":\"What happens to the digits beyond scale\"}},"
    "\"required\":[\"expression\"],\"additionalProperties\":false}");
  return &t;
}

EXPORT("portside:tool/tool@1.0.0#description") text *description(void) {
  static text t;
  t = literal("Evaluates an arithmetic expression exactly, in decimal: 0.1 + 0.2 is 0.3. Answers "
              "{\"result\": the number as text, \"exact\": false when something was rounded}.");
  return &t;
}
