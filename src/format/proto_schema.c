/* Schemas of Protocol Buffers: the text of .proto files to messages, names to what they name, and the text that a
 * table's columns make. Services, extensions and options beside `packed` say nothing about rows and are passed over. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/message_int.h"

static const char *const scalar_names[] = {"double", "float",  "int64",   "uint64",  "int32",    "uint32",
                                           "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64",
                                           "bool",   "string", "bytes",   "enum",    "message"};

const char *ck_proto_scalar_name(ck_proto_kind k) { return scalar_names[k]; }

const char *ck_proto_print(ck_arena *a, const ck_proto_field *f) {
    const char *name = f->message ? f->message->name : f->enums ? f->enums->name : "";
    if (f->message && f->message->map_entry) return "a map";
    const char *s =
        ck_arena_printf(a, "%s%s%s%s", f->repeated ? "repeated " : "", scalar_names[f->kind], name[0] ? " " : "", name);
    return s ? s : "?";
}

unsigned ck_proto_wire_type(ck_proto_kind k) {
    switch (k) {
    case CK_PROTO_DOUBLE:
    case CK_PROTO_FIXED64:
    case CK_PROTO_SFIXED64: return 1;
    case CK_PROTO_FLOAT:
    case CK_PROTO_FIXED32:
    case CK_PROTO_SFIXED32: return 5;
    case CK_PROTO_STRING:
    case CK_PROTO_BYTES:
    case CK_PROTO_MESSAGE: return 2;
    default: return 0;
    }
}

bool ck_proto_is_time(const ck_proto *m) { return m && strcmp(m->name, "google.protobuf.Timestamp") == 0; }

bool ck_proto_is_wrapper(const ck_proto *m) {
    static const char *const names[] = {"Double", "Float", "Int64",  "UInt64", "Int32",
                                        "UInt32", "Bool",  "String", "Bytes"};
    static const char package[] = "google.protobuf.";
    if (!m || strncmp(m->name, package, sizeof package - 1) != 0) return false;
    for (size_t i = 0; i < CK_ARRAY_COUNT(names); i++) {
        const char *rest = m->name + sizeof package - 1;
        size_t n = strlen(names[i]);
        if (strncmp(rest, names[i], n) == 0 && strcmp(rest + n, "Value") == 0) return true;
    }
    return false;
}

/* What registries do not keep: files every reader of .proto knows. */
static const struct {
    const char *name, *text;
} known[] = {
    {"google/protobuf/timestamp.proto",
     "syntax=\"proto3\"; package google.protobuf; message Timestamp {int64 seconds=1; int32 nanos=2;}"},
    {"google/protobuf/duration.proto",
     "syntax=\"proto3\"; package google.protobuf; message Duration {int64 seconds=1; int32 nanos=2;}"},
    {"google/protobuf/empty.proto", "syntax=\"proto3\"; package google.protobuf; message Empty {}"},
    {"google/protobuf/any.proto",
     "syntax=\"proto3\"; package google.protobuf; message Any {string type_url=1; bytes value=2;}"},
    {"google/protobuf/wrappers.proto",
     "syntax=\"proto3\"; package google.protobuf; message DoubleValue {double value=1;} message FloatValue {float "
     "value=1;} "
     "message Int64Value {int64 value=1;} message UInt64Value {uint64 value=1;} message Int32Value {int32 value=1;} "
     "message UInt32Value {uint32 value=1;} message BoolValue {bool value=1;} message StringValue {string value=1;} "
     "message BytesValue {bytes value=1;}"},
};

/* ---- words ---- */

typedef enum word_kind { WORD_END, WORD_NAME, WORD_NUMBER, WORD_TEXT, WORD_SIGN } word_kind;

typedef struct parser {
    ck_arena *a;
    const char *p, *end;
    word_kind kind;
    ck_view word;
    unsigned line;
    bool proto3;
    const char *package;
    ck_map names; /* full name -> ck_proto or ck_proto_enum, and which: */
    ck_map kinds; /* full name -> "m" or "e" */
    ck_proto_file *file;
    ck_error *err;
} parser;

static ck_status nomem(parser *s) { return ck_nomem(s->err, s->a->mem, sizeof(ck_proto)); }

static ck_status bad(parser *s, const char *wanted) {
    if (s->kind == WORD_END)
        return ck_fail(s->err, CK_DATA, "the schema is no .proto: it ends where %s should be", wanted);
    return ck_fail(s->err, CK_DATA, "the schema is no .proto: line %u has '%.*s' where %s should be", s->line,
                   (int)(s->word.n < 60 ? s->word.n : 60), s->word.p, wanted);
}

static void blanks(parser *s) {
    for (; s->p < s->end; s->p++) {
        if (*s->p == '\n') s->line++;
        if (isspace((unsigned char)*s->p)) continue;
        if (s->end - s->p < 2 || s->p[0] != '/') return;
        if (s->p[1] == '/') {
            while (s->p + 1 < s->end && s->p[1] != '\n') s->p++;
        } else if (s->p[1] == '*') {
            for (s->p += 2; s->p + 1 < s->end && !(s->p[0] == '*' && s->p[1] == '/'); s->p++) s->line += *s->p == '\n';
            s->p++;
        } else {
            return;
        }
    }
    if (s->p > s->end) s->p = s->end;
}

static void next(parser *s) {
    blanks(s);
    const char *from = s->p;
    s->kind = WORD_END;
    s->word = (ck_view){from, 0};
    if (from == s->end) return;
    unsigned char c = (unsigned char)*from;
    if (isalpha(c) || c == '_' || c == '.') {
        while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '_' || *s->p == '.')) s->p++;
        s->kind = WORD_NAME;
    } else if (isdigit(c)) {
        while (s->p < s->end && (isalnum((unsigned char)*s->p) || *s->p == '.')) s->p++;
        s->kind = WORD_NUMBER;
    } else if (c == '"' || c == '\'') {
        for (s->p++; s->p < s->end && *s->p != (char)c; s->p++) s->p += *s->p == '\\' && s->p + 1 < s->end;
        s->kind = s->p < s->end ? WORD_TEXT : WORD_END;
        s->word = (ck_view){from + 1, (size_t)(s->p - from - 1)};
        if (s->p < s->end) s->p++;
        return;
    } else {
        s->p++;
        s->kind = WORD_SIGN;
    }
    s->word.n = (size_t)(s->p - from);
}

static bool at(const parser *s, const char *word) {
    return (s->kind == WORD_NAME || s->kind == WORD_SIGN) && ck_view_is(s->word, word);
}
static ck_status sign(parser *s, const char *word, const char *wanted) {
    if (!at(s, word)) return bad(s, wanted);
    next(s);
    return CK_OK;
}
static ck_status name(parser *s, const char **out) {
    if (s->kind != WORD_NAME) return bad(s, "a name");
    *out = ck_arena_strndup(s->a, s->word.p, s->word.n);
    next(s);
    return *out ? CK_OK : nomem(s);
}
static ck_status number(parser *s, int64_t *out) {
    bool minus = at(s, "-");
    if (minus) next(s);
    if (s->kind != WORD_NUMBER || s->word.n > 20) return bad(s, "a number");
    char text[24], *end;
    memcpy(text, s->word.p, s->word.n);
    text[s->word.n] = 0;
    *out = strtoll(text, &end, 0);
    if (*end) return bad(s, "a number");
    if (minus) *out = -*out;
    next(s);
    return CK_OK;
}

/* Up to the sign that ends what nobody wants, behind it: `;`, or a whole block. */
static ck_status pass(parser *s) {
    for (unsigned depth = 0; s->kind != WORD_END; next(s)) {
        if (at(s, "{")) depth++;
        if (at(s, "}") && depth-- <= 1) {
            next(s);
            return CK_OK;
        }
        if (at(s, ";") && depth == 0) {
            next(s);
            return CK_OK;
        }
    }
    return bad(s, "';'");
}

/* ---- names ---- */

static const char *inside(parser *s, const ck_proto *parent, const char *of) {
    const char *around = parent ? parent->name : s->package;
    return around[0] ? ck_arena_printf(s->a, "%s.%s", around, of) : of;
}

static ck_status enter(parser *s, const char *full, void *what, const char *kind) {
    ck_status st = ck_map_put(&s->names, ck_view_of(full), what, NULL);
    if (st == CK_OK) st = ck_map_put(&s->kinds, ck_view_of(full), (void *)(uintptr_t)kind, NULL);
    return st == CK_OK ? CK_OK : nomem(s);
}

/* From the innermost scope out. */
static ck_status resolve(parser *s, const ck_proto *m, ck_proto_field *f) {
    const char *scope = m->name;
    for (size_t n = strlen(scope);; n--) {
        while (n && scope[n] && scope[n] != '.') n--;
        const char *full = f->type_name[0] == '.' ? f->type_name + 1
                           : n                    ? ck_arena_printf(s->a, "%.*s.%s", (int)n, scope, f->type_name)
                                                  : f->type_name;
        if (!full) return nomem(s);
        const char *kind = ck_map_get(&s->kinds, ck_view_of(full));
        if (kind && kind[0] == 'm') {
            f->kind = CK_PROTO_MESSAGE;
            f->message = ck_map_get(&s->names, ck_view_of(full));
            f->presence = !f->repeated;
            return CK_OK;
        }
        if (kind) {
            f->kind = CK_PROTO_ENUM;
            f->enums = ck_map_get(&s->names, ck_view_of(full));
            return CK_OK;
        }
        if (n == 0 || f->type_name[0] == '.') break;
    }
    return ck_fail(
        s->err, CK_DATA,
        "field %.100s of message %.100s is a %.200s, which is neither in the schema nor in what it refers to", f->name,
        m->name, f->type_name);
}

static ck_status resolve_all(parser *s, ck_proto *const *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        ck_proto *m = list[i];
        for (uint32_t k = 0; k < m->field_count; k++)
            if (m->fields[k].type_name) CK_TRY(resolve(s, m, &m->fields[k]));
        CK_TRY(resolve_all(s, m->nested, m->nested_count));
    }
    return CK_OK;
}

/* ---- messages ---- */

static ck_status grow(parser *s, void *list, uint32_t count, size_t size, void *out) {
    void *old = *(void **)list;
    if (count && (count & (count - 1))) {
        *(void **)out = old;
        return CK_OK;
    }
    void *p = ck_arena_array(s->a, count ? 2 * (size_t)count : 1, size);
    if (!p) return nomem(s);
    if (count) memcpy(p, old, count * size);
    *(void **)out = p;
    return CK_OK;
}

static ck_status parse_message(parser *s, ck_proto *parent, unsigned depth);

static ck_status new_message(parser *s, ck_proto *parent, const char *of, ck_proto **out) {
    ck_proto *m = CK_ARENA_NEW(s->a, ck_proto);
    if (!m || !(m->name = inside(s, parent, of))) return nomem(s);
    m->parent = parent;
    ck_proto ***list = parent ? &parent->nested : &s->file->messages;
    uint32_t *count = parent ? &parent->nested_count : &s->file->message_count;
    CK_TRY(grow(s, list, *count, sizeof(ck_proto *), list));
    (*list)[(*count)++] = m;
    *out = m;
    return enter(s, m->name, m, "m");
}

static ck_status parse_enum(parser *s, ck_proto *parent) {
    ck_proto_enum *e = CK_ARENA_NEW(s->a, ck_proto_enum);
    const char *own;
    next(s);
    CK_TRY(name(s, &own));
    if (!e || !(e->name = inside(s, parent, own))) return nomem(s);
    CK_TRY(enter(s, e->name, e, "e"));
    CK_TRY(sign(s, "{", "'{'"));
    while (!at(s, "}")) {
        int64_t n;
        if (at(s, "option") || at(s, "reserved") || at(s, ";")) {
            CK_TRY(pass(s));
            continue;
        }
        CK_TRY(grow(s, &e->names, e->count, sizeof *e->names, &e->names));
        CK_TRY(grow(s, &e->numbers, e->count, sizeof *e->numbers, &e->numbers));
        CK_TRY(name(s, &e->names[e->count]));
        CK_TRY(sign(s, "=", "'='"));
        CK_TRY(number(s, &n));
        e->numbers[e->count++] = (int32_t)n;
        CK_TRY(pass(s));
    }
    next(s);
    return CK_OK;
}

/* `[packed = false, ...];` */
static ck_status parse_options(parser *s, ck_proto_field *f) {
    while (!at(s, ";")) {
        if (s->kind == WORD_END) return bad(s, "';'");
        bool packed = at(s, "packed");
        next(s);
        if (!packed || !at(s, "=")) continue;
        next(s);
        f->packed = at(s, "true");
    }
    next(s);
    return CK_OK;
}

static ck_proto_kind scalar_of(const char *word) {
    for (unsigned i = 0; i <= CK_PROTO_BYTES; i++)
        if (strcmp(word, scalar_names[i]) == 0) return (ck_proto_kind)i;
    return CK_PROTO_MESSAGE;
}

static ck_status add_field(parser *s, ck_proto *m, ck_proto_field f, ck_proto_field **out) {
    if (f.number < 1 || f.number > 536870911)
        return ck_fail(s->err, CK_DATA, "field %.100s of message %.100s has the number %u", f.name, m->name, f.number);
    CK_TRY(grow(s, &m->fields, m->field_count, sizeof *m->fields, &m->fields));
    *out = &m->fields[m->field_count++];
    **out = f;
    return CK_OK;
}

/* A type, a name, a number. */
static ck_status parse_field(parser *s, ck_proto *m, ck_proto_field f) {
    int64_t n;
    CK_TRY(name(s, &f.type_name));
    f.kind = scalar_of(f.type_name);
    if (f.kind != CK_PROTO_MESSAGE) f.type_name = NULL;
    f.packed = f.repeated && s->proto3 && ck_proto_wire_type(f.kind) != 2;
    CK_TRY(name(s, &f.name));
    CK_TRY(sign(s, "=", "'='"));
    CK_TRY(number(s, &n));
    f.number = n < 0 || n > UINT32_MAX ? 0 : (uint32_t)n;
    ck_proto_field *added;
    CK_TRY(add_field(s, m, f, &added));
    return parse_options(s, added);
}

/* `map<K, V> name = n;` is a repeated message of a key and a value. */
static ck_status parse_map(parser *s, ck_proto *m) {
    ck_proto_field key = {.name = "key", .number = 1}, value = {.name = "value", .number = 2}, *added;
    ck_proto_field f = {.repeated = true, .kind = CK_PROTO_MESSAGE};
    const char *key_type;
    int64_t n;
    next(s);
    CK_TRY(sign(s, "<", "'<'"));
    CK_TRY(name(s, &key_type));
    CK_TRY(sign(s, ",", "','"));
    CK_TRY(name(s, &value.type_name));
    CK_TRY(sign(s, ">", "'>'"));
    key.kind = scalar_of(key_type);
    value.kind = scalar_of(value.type_name);
    if (key.kind == CK_PROTO_MESSAGE) return bad(s, "a map whose keys are numbers or texts");
    if (value.kind != CK_PROTO_MESSAGE) value.type_name = NULL;
    CK_TRY(name(s, &f.name));
    CK_TRY(sign(s, "=", "'='"));
    CK_TRY(number(s, &n));
    f.number = n < 0 || n > UINT32_MAX ? 0 : (uint32_t)n;
    ck_proto *entry = CK_ARENA_NEW(s->a, ck_proto);
    if (!entry || !(entry->name = ck_arena_printf(s->a, "%s.%s(entry)", m->name, f.name))) return nomem(s);
    entry->map_entry = true;
    CK_TRY(add_field(s, entry, key, &added));
    CK_TRY(add_field(s, entry, value, &added));
    f.message = entry;
    CK_TRY(add_field(s, m, f, &added));
    return parse_options(s, added);
}

static ck_status parse_oneof(parser *s, ck_proto *m) {
    const char *ignored;
    next(s);
    CK_TRY(name(s, &ignored));
    CK_TRY(sign(s, "{", "'{'"));
    while (!at(s, "}")) {
        if (at(s, "option") || at(s, ";"))
            CK_TRY(pass(s));
        else
            CK_TRY(parse_field(s, m, (ck_proto_field){.presence = true}));
    }
    next(s);
    return CK_OK;
}

static ck_status parse_member(parser *s, ck_proto *m, unsigned depth) {
    if (at(s, "message")) {
        next(s);
        return parse_message(s, m, depth + 1);
    }
    if (at(s, "enum")) return parse_enum(s, m);
    if (at(s, "oneof")) return parse_oneof(s, m);
    if (at(s, "map")) return parse_map(s, m);
    if (at(s, "option") || at(s, "reserved") || at(s, "extensions") || at(s, "extend") || at(s, ";")) return pass(s);
    ck_proto_field f = {.presence = !s->proto3};
    bool labelled = at(s, "optional") || at(s, "repeated") || at(s, "required");
    if (labelled) {
        f.repeated = at(s, "repeated");
        f.required = at(s, "required");
        f.presence = !f.repeated;
        next(s);
    }
    if (at(s, "group")) return bad(s, "anything but a group, which is not read");
    return parse_field(s, m, f);
}

static int by_number(const void *a, const void *b) {
    uint32_t x = ((const ck_proto_field *)a)->number, y = ((const ck_proto_field *)b)->number;
    return (x > y) - (x < y);
}

/* Behind the word `message`. */
static ck_status parse_message(parser *s, ck_proto *parent, unsigned depth) {
    const char *own;
    ck_proto *m = NULL;
    if (depth > CK_MESSAGE_DEPTH_MAX) return bad(s, "fewer messages in messages");
    CK_TRY(name(s, &own));
    CK_TRY(new_message(s, parent, own, &m));
    CK_TRY(sign(s, "{", "'{'"));
    while (!at(s, "}")) CK_TRY(parse_member(s, m, depth));
    next(s);
    if (m->field_count) qsort(m->fields, m->field_count, sizeof *m->fields, by_number);
    for (uint32_t i = 1; i < m->field_count; i++)
        if (m->fields[i].number == m->fields[i - 1].number)
            return ck_fail(s->err, CK_DATA, "message %.100s has two fields of the number %u", m->name,
                           m->fields[i].number);
    return CK_OK;
}

/* ---- files ---- */

static ck_status parse_top(parser *s) {
    if (at(s, "syntax")) {
        next(s);
        CK_TRY(sign(s, "=", "'='"));
        s->proto3 = s->kind == WORD_TEXT && ck_view_is(s->word, "proto3");
        return pass(s);
    }
    if (at(s, "edition")) return bad(s, "syntax = \"proto2\" or \"proto3\"");
    if (at(s, "package")) {
        next(s);
        CK_TRY(name(s, &s->package));
        return pass(s);
    }
    if (at(s, "message")) {
        next(s);
        return parse_message(s, NULL, 1);
    }
    if (at(s, "enum")) return parse_enum(s, NULL);
    if (at(s, "import") || at(s, "option") || at(s, "service") || at(s, "extend") || at(s, ";")) return pass(s);
    return bad(s, "message, enum, import, option, package or syntax");
}

static ck_status parse_file(parser *s, ck_view text, ck_proto_file *file) {
    s->p = text.p, s->end = text.p + text.n;
    s->line = 1;
    s->package = "";
    s->proto3 = false;
    s->file = file;
    *file = (ck_proto_file){0};
    for (next(s); s->kind != WORD_END;) CK_TRY(parse_top(s));
    return CK_OK;
}

/* Of map entries too, which are in no list. */
static ck_status resolve_entries(parser *s, ck_proto *const *list, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < list[i]->field_count; k++) {
            const ck_proto *entry = list[i]->fields[k].message;
            if (!entry || !entry->map_entry || !entry->fields[1].type_name) continue;
            ck_proto within = *entry;
            within.name = list[i]->name; /* names are looked for where the map stands */
            CK_TRY(resolve(s, &within, &entry->fields[1]));
            entry->fields[1].presence = false; /* one that is not there is an empty message */
        }
        CK_TRY(resolve_entries(s, list[i]->nested, list[i]->nested_count));
    }
    return CK_OK;
}

ck_status ck_proto_parse(ck_arena *a, const ck_message_text *texts, uint32_t count, ck_proto_file *out, ck_error *err) {
    parser s = {.a = a, .err = err};
    ck_proto_file *files = ck_arena_array(a, CK_ARRAY_COUNT(known) + count, sizeof *files);
    uint32_t n = 0;
    ck_map_init(&s.names, a, false);
    ck_map_init(&s.kinds, a, false);
    if (!files) return nomem(&s);
    for (size_t i = 0; i < CK_ARRAY_COUNT(known); i++) CK_TRY(parse_file(&s, ck_view_of(known[i].text), &files[n++]));
    for (uint32_t i = 0; i < count; i++) CK_TRY(parse_file(&s, texts[i].text, &files[n++]));
    for (uint32_t i = 0; i < n; i++) {
        CK_TRY(resolve_all(&s, files[i].messages, files[i].message_count));
        CK_TRY(resolve_entries(&s, files[i].messages, files[i].message_count));
    }
    *out = files[n - 1];
    return CK_OK;
}

/* ---- the schema of a table ---- */

typedef struct writing {
    ck_arena *a;
    ck_bytes text;
    const char *column;
    unsigned rows;
    ck_error *err;
} writing;

static bool is_name(const char *n) {
    if (!isalpha((unsigned char)n[0]) && n[0] != '_') return false;
    for (const char *p = n; *p; p++)
        if ((unsigned char)*p >= 128 || (!isalnum((unsigned char)*p) && *p != '_')) return false;
    return true;
}

static ck_status no_type(writing *w, const ck_type *t, const char *more) {
    return ck_fail(w->err, CK_DATA, "column \"%.200s\": protobuf has no type for %s%s", w->column,
                   ck_type_name(w->a, t), more);
}

/* The name of a type that is no message of its own; NULL: there is none. */
static const char *plain_type(const ck_type *t) {
    switch (t->kind) {
    case CK_TYPE_BOOLEAN: return "bool";
    case CK_TYPE_TINYINT:
    case CK_TYPE_SMALLINT:
    case CK_TYPE_INTEGER: return "int32";
    case CK_TYPE_BIGINT: return "int64";
    case CK_TYPE_REAL: return "float";
    case CK_TYPE_DOUBLE: return "double";
    case CK_TYPE_VARCHAR: return "string";
    case CK_TYPE_BYTES: return "bytes";
    case CK_TYPE_TIMESTAMP:
    case CK_TYPE_TIMESTAMP_LTZ: return "google.protobuf.Timestamp";
    default: return NULL;
    }
}

static ck_status put_message(writing *w, const char *of, const ck_field *fields, uint32_t count, bool columns);

/* A message for a ROW before the field that has it. */
static ck_status put_row(writing *w, const ck_type *t, char of[32]) {
    snprintf(of, 32, "Row%u", ++w->rows);
    return put_message(w, of, t->fields, t->field_count, false);
}

static ck_status type_of(writing *w, const ck_type *t, char of[32]) {
    if (t->kind == CK_TYPE_ROW) return put_row(w, t, of);
    const char *plain = plain_type(t);
    if (!plain)
        return no_type(w, t, t->kind == CK_TYPE_DECIMAL || ck_kind_is_datetime(t->kind) ? "; cast it to VARCHAR" : "");
    snprintf(of, 32, "%s", plain);
    return CK_OK;
}

static ck_status put_field(writing *w, const ck_field *f, unsigned n) {
    char of[32], key[32];
    const ck_type *t = f->type;
    if (t->kind == CK_TYPE_ARRAY) {
        CK_TRY(type_of(w, t->fields[0].type, of));
        return ck_bytes_printf(&w->text, "repeated %s %s = %u; ", of, f->name, n);
    }
    if (t->kind == CK_TYPE_MAP) {
        const ck_type *k = t->fields[0].type;
        if (!ck_kind_is_integer(k->kind) && k->kind != CK_TYPE_VARCHAR && k->kind != CK_TYPE_BOOLEAN)
            return no_type(w, t, "; keys of a map are numbers, texts or booleans there");
        CK_TRY(type_of(w, k, key));
        CK_TRY(type_of(w, t->fields[1].type, of));
        return ck_bytes_printf(&w->text, "map<%s, %s> %s = %u; ", key, of, f->name, n);
    }
    CK_TRY(type_of(w, t, of));
    return ck_bytes_printf(&w->text, "%s%s %s = %u; ", f->nullable ? "optional " : "", of, f->name, n);
}

static ck_status put_message(writing *w, const char *of, const ck_field *fields, uint32_t count, bool columns) {
    CK_TRY(ck_bytes_printf(&w->text, "message %s { ", of));
    for (uint32_t i = 0; i < count; i++) {
        if (columns) w->column = fields[i].name;
        if (!is_name(fields[i].name))
            return ck_fail(
                w->err, CK_DATA,
                "column \"%.100s\": protobuf takes no field named \"%.100s\" (letters, digits, underscores); "
                "give the subject a schema, or the column another name",
                w->column, fields[i].name);
        CK_TRY(put_field(w, &fields[i], i + 1));
    }
    return ck_bytes_str(&w->text, "} ");
}

ck_status ck_proto_schema_of(ck_arena *a, const char *of, const ck_schema *table, const char **out, ck_error *err) {
    writing w = {.a = a, .err = err};
    ck_bytes_init(&w.text, a->mem, 1 << 24);
    char *message = ck_arena_strdup(a, of);
    for (char *p = message; p && *p; p++)
        if ((unsigned char)*p >= 128 || (!isalnum((unsigned char)*p) && *p != '_')) *p = '_';
    ck_status s = message ? CK_OK : CK_NOMEM;
    if (s == CK_OK) s = ck_bytes_str(&w.text, "syntax = \"proto3\"; import \"google/protobuf/timestamp.proto\"; ");
    if (s == CK_OK && isdigit((unsigned char)message[0])) message[0] = '_';
    if (s == CK_OK) s = put_message(&w, message, table->fields, table->field_count, true);
    if (s == CK_OK && !(*out = ck_arena_strndup(a, w.text.p, w.text.n))) s = CK_NOMEM;
    ck_bytes_destroy(&w.text);
    return s == CK_OK || s == CK_DATA ? s : ck_nomem(err, a->mem, 1024);
}
