/* See builder.h. One column at a time: memory, single appends, finishing. Gathering is in gather.c, whole batches in
 * batch_builder.c. */
#include "data/builder_int.h"
#include "data/take_int.h"

enum {
    FIRST_ROWS = 64, /* memory of a new column when nothing is known of its length */
    OWN_BYTES_MIN = 1024,
    OWN_BYTES_MAX = 256 * 1024, /* larger strings get a buffer of their own */
};

/* ---- making and unmaking ---- */

static void set_empty(ck_column_builder *b, ck_mem mem, ck_phys phys, uint32_t capacity) {
    *b = (ck_column_builder){
        .mem = mem, .phys = phys, .capacity = capacity, .own_index = -1, .given_index = -1, .take = &ck_take_base};
}

static ck_status make_children(ck_column_builder *b, uint32_t count) {
    if (count == 0) return CK_OK;
    b->children = ck_alloc_array(b->mem, count, sizeof *b->children);
    if (!b->children) return CK_NOMEM;
    b->child_count = count;
    for (uint32_t i = 0; i < count; i++) set_empty(&b->children[i], b->mem, CK_PHYS_NULL, 0);
    return CK_OK;
}

static ck_status init_typed(ck_column_builder *b, ck_mem mem, const ck_type *type, ck_phys phys, uint32_t capacity,
                            bool grows) {
    set_empty(b, mem, phys, capacity);
    b->type = type;
    b->grows = grows;
    if (phys == CK_PHYS_LIST) {
        CK_TRY(make_children(b, 1));
        bool map =
            type->kind == CK_TYPE_MAP; /* the elements are (key, value) structs, which have no type of their own */
        const ck_type *elem = map ? type : type->fields[0].type;
        return init_typed(&b->children[0], mem, elem, map ? CK_PHYS_STRUCT : ck_type_phys(elem), UINT32_MAX, true);
    }
    if (phys != CK_PHYS_STRUCT) return CK_OK;
    CK_TRY(make_children(b, type->field_count));
    for (uint32_t i = 0; i < type->field_count; i++) {
        const ck_type *t = type->fields[i].type;
        CK_TRY(init_typed(&b->children[i], mem, t, ck_type_phys(t), capacity, grows));
    }
    return CK_OK;
}

static ck_status init_shaped(ck_column_builder *b, ck_mem mem, const ck_column *like, uint32_t capacity, bool grows) {
    set_empty(b, mem, like->phys, capacity);
    b->grows = grows;
    b->copies = true;
    bool list = like->phys == CK_PHYS_LIST;
    CK_TRY(make_children(b, like->child_count));
    for (uint32_t i = 0; i < like->child_count; i++)
        CK_TRY(init_shaped(&b->children[i], mem, like->children[i], list ? UINT32_MAX : capacity, grows || list));
    return CK_OK;
}

void ck_column_builder_take_with(ck_column_builder *b, ck_cpu cpu) {
    b->take = ck_take_for(cpu);
    for (uint32_t i = 0; i < b->child_count; i++) ck_column_builder_take_with(&b->children[i], cpu);
}

ck_status ck_column_builder_init(ck_column_builder *b, ck_mem mem, const ck_type *type, uint32_t capacity) {
    ck_status s = init_typed(b, mem, type, ck_type_phys(type), capacity, false);
    if (s != CK_OK) ck_column_builder_destroy(b);
    return s;
}

ck_status ck_column_builder_init_copy(ck_column_builder *b, ck_mem mem, const ck_column *like, uint32_t capacity) {
    ck_status s = init_shaped(b, mem, like, capacity, false);
    if (s != CK_OK) ck_column_builder_destroy(b);
    return s;
}

static void drop_heaps(ck_column_builder *b) {
    for (uint32_t i = 0; i < b->buffer_count; i++) ck_buffer_unref(&b->buffers[i]);
    b->buffer_count = 0;
    ck_heaps_unref(&b->last_heaps);
    b->own_index = b->given_index = -1;
    b->own_used = 0;
    b->own_bytes = b->long_bytes = 0;
}

void ck_column_builder_destroy(ck_column_builder *b) {
    ck_column_unref(&b->col);
    drop_heaps(b);
    ck_free(b->mem, b->buffers, b->buffer_capacity * sizeof *b->buffers);
    for (uint32_t i = 0; i < b->child_count; i++) ck_column_builder_destroy(&b->children[i]);
    ck_free(b->mem, b->children, b->child_count * sizeof *b->children);
    *b = (ck_column_builder){0};
}

/* ---- memory of rows ---- */

static ck_column *new_column(const ck_column_builder *b, uint32_t rows) {
    ck_column *c = ck_column_new(b->mem, b->phys, rows);
    /* bits are set word by word, so the words start as something */
    if (c && b->phys == CK_PHYS_BOOL) memset(c->bits, 0, ck_phys_data_bytes(b->phys, rows));
    return c;
}

/* Moves the rows so far into a column of `rows` rows, at least as many. */
static ck_status move_rows(ck_column_builder *b, uint32_t rows) {
    ck_column *to = new_column(b, rows);
    if (!to) return CK_NOMEM;
    if (b->col) {
        memcpy(to->data, b->col->data, ck_phys_data_bytes(b->phys, b->length));
        if (b->col->validity) memcpy(ck_column_writable_validity(to), b->col->validity, ck_bitmap_words(b->length) * 8);
    }
    ck_column_unref(&b->col);
    b->col = to;
    b->room = rows;
    return CK_OK;
}

ck_status ck_column_builder_room(ck_column_builder *b, uint32_t n) {
    if (n <= b->room - b->length) return CK_OK;
    CK_ASSERT(b->grows || n <= b->capacity - b->length);
    uint64_t need = (uint64_t)b->length + n;
    if (need > INT32_MAX) return CK_NOMEM;                        /* list offsets are int32 */
    uint64_t want = FIRST_ROWS + b->room_hint + b->room_hint / 4; /* a little more than last time */
    if (b->room) want = b->room < CK_BATCH_ROWS_MAX / 4 ? b->room * 4ull : b->room * 2ull;
    if (want > b->capacity) want = b->capacity;
    if (want > INT32_MAX) want = INT32_MAX;
    return move_rows(b, (uint32_t)(want < need ? need : want));
}

/* ---- memory of strings ---- */

ck_status ck_column_builder_buffer_room(ck_column_builder *b, uint32_t more) {
    if (more <= b->buffer_capacity - b->buffer_count) return CK_OK;
    if (more > INT32_MAX - b->buffer_count) return CK_NOMEM; /* a view's buffer index is int32 */
    uint32_t want = b->buffer_capacity * 2 > b->buffer_count + more ? b->buffer_capacity * 2 : b->buffer_count + more;
    if (want < 4) want = 4;
    ck_buffer **p = ck_realloc(b->mem, b->buffers, b->buffer_capacity * sizeof *p, want * sizeof *p);
    if (!p) return CK_NOMEM;
    b->buffers = p;
    b->buffer_capacity = want;
    return CK_OK;
}

ck_status ck_column_builder_own_room(ck_column_builder *b, size_t bytes, bool exact) {
    if (b->own_index >= 0 && bytes <= b->buffers[b->own_index]->bytes - b->own_used) return CK_OK;
    if (bytes > INT32_MAX) return CK_NOMEM; /* a view's offset is int32 */
    size_t size = b->own_index >= 0 ? b->buffers[b->own_index]->bytes * 2 : b->own_hint;
    if (size < OWN_BYTES_MIN) size = OWN_BYTES_MIN;
    if (size > OWN_BYTES_MAX) size = OWN_BYTES_MAX;
    if (size < bytes || (exact && b->own_index < 0)) size = bytes;
    CK_TRY(ck_column_builder_buffer_room(b, 1));
    ck_buffer *own = ck_buffer_new(b->mem, size);
    if (!own) return CK_NOMEM;
    b->own_index = (int32_t)b->buffer_count;
    b->buffers[b->buffer_count++] = own;
    b->own_used = 0;
    return CK_OK;
}

ck_status ck_column_builder_copy_str(ck_column_builder *b, const char *p, size_t n, ck_strview *out) {
    CK_TRY(ck_column_builder_own_room(b, n, false));
    memcpy(b->buffers[b->own_index]->p + b->own_used, p, n);
    *out = ck_strview_ref(p, n, (uint32_t)b->own_index, b->own_used);
    b->own_used += (uint32_t)n;
    b->own_bytes += n;
    b->long_bytes += n;
    return CK_OK;
}

ck_status ck_column_builder_give(ck_column_builder *b, ck_buffer *buffer) {
    CK_TRY(ck_column_builder_buffer_room(b, 1));
    b->given_index = (int32_t)b->buffer_count;
    b->buffers[b->buffer_count++] = ck_buffer_ref(buffer);
    return CK_OK;
}

/* ---- appends that are not inline ---- */

ck_status ck_build_nulls(ck_column_builder *b, uint32_t n) {
    if (n == 0) return CK_OK;
    CK_TRY(ck_column_builder_room(b, n));
    uint32_t at = b->length;
    if (b->phys == CK_PHYS_STRUCT)
        for (uint32_t i = 0; i < b->child_count; i++) CK_TRY(ck_build_nulls(&b->children[i], n));
    if (b->phys == CK_PHYS_LIST) {
        int32_t end = b->col->offsets[at];
        for (uint32_t i = 1; i <= n; i++) b->col->offsets[at + i] = end;
    } else if (b->phys != CK_PHYS_BOOL) {
        memset((char *)b->col->data + at * ck_phys_width(b->phys), 0, n * ck_phys_width(b->phys));
    }
    if (b->phys != CK_PHYS_NULL) {
        uint64_t *validity = ck_column_writable_validity(b->col);
        for (uint32_t i = 0; i < n; i++) ck_bit_clear(validity, at + i);
    }
    b->length = at + n;
    return CK_OK;
}

ck_status ck_build_null(ck_column_builder *b) {
    ck_status s = ck_build_nulls(b, 1);
    if (CK_UNLIKELY(s != CK_OK)) ck_column_builder_truncate(b, b->length); /* children may be ahead */
    return s;
}

ck_status ck_build_end(ck_column_builder *b) {
    CK_BUILD_ROOM(b);
    if (b->phys == CK_PHYS_LIST) {
        b->col->offsets[b->length + 1] = (int32_t)b->children[0].length;
    } else {
        CK_DASSERT(b->phys == CK_PHYS_STRUCT);
        for (uint32_t i = 0; i < b->child_count; i++) CK_DASSERT(b->children[i].length == b->length + 1);
    }
    b->length++;
    return CK_OK;
}

/* A value half appended to a list or a struct (elements, some children) goes as well. */
void ck_column_builder_truncate(ck_column_builder *b, uint32_t length) {
    uint32_t keep = length < b->length ? length : b->length;
    uint32_t child_keep = keep;
    if (b->phys == CK_PHYS_LIST) child_keep = b->col ? (uint32_t)b->col->offsets[keep] : 0;
    for (uint32_t i = 0; i < b->child_count; i++) ck_column_builder_truncate(&b->children[i], child_keep);
    if (length >= b->length) return;
    if (b->phys == CK_PHYS_VIEW) {
        const ck_column *c = b->col;
        for (uint32_t i = length; i < b->length; i++)
            if (c->views[i].length > CK_STRVIEW_INLINE) b->long_bytes -= (size_t)c->views[i].length;
    }
    if (b->col->validity) /* appends of values rely on the bits beyond being set */
        for (uint32_t i = length; i < b->length; i++) ck_bit_set(b->col->validity, i);
    b->length = length;
}

/* ---- finishing ---- */

ck_status ck_column_builder_prepare(ck_column_builder *b) {
    if (!b->col || b->room > 2 * (uint64_t)b->length + FIRST_ROWS) { /* do not pin memory for rows that are not there */
        ck_status s = move_rows(b, b->length);
        if (s != CK_OK && !b->col) return s;
    }
    if (b->buffer_count && b->long_bytes) {
        b->col->heaps = ck_heaps_new(b->mem, b->buffers, b->buffer_count);
        if (!b->col->heaps) return CK_NOMEM;
    }
    if (b->child_count) CK_TRY(ck_column_reserve_children(b->col, b->child_count));
    for (uint32_t i = 0; i < b->child_count; i++) CK_TRY(ck_column_builder_prepare(&b->children[i]));
    return CK_OK;
}

void ck_column_builder_cancel(ck_column_builder *b) {
    if (b->col) ck_column_drop_parts(b->col);
    for (uint32_t i = 0; i < b->child_count; i++) ck_column_builder_cancel(&b->children[i]);
}

ck_column *ck_column_builder_take(ck_column_builder *b) {
    ck_column *c = b->col;
    c->length = b->length;
    for (uint32_t i = 0; i < b->child_count; i++) c->children[i] = ck_column_builder_take(&b->children[i]);
    b->own_hint = b->own_bytes;
    drop_heaps(b);
    b->room_hint = b->length;
    b->col = NULL;
    b->length = b->room = 0;
    return c;
}

ck_column *ck_column_builder_finish(ck_column_builder *b) {
    if (ck_column_builder_prepare(b) == CK_OK) return ck_column_builder_take(b);
    ck_column_builder_cancel(b);
    return NULL;
}
