/* Bytes of one split, in order, without the step ever waiting for a disk: up to three buffers are under way on the I/O
 * executor while one is decoded. A buffer leaves room in front of what is read, so that the partial record at the end
 * of the one before can be put there without copying the rest. */
#include "connector/file/file_int.h"

#include "connector/file/stdin.h"

enum { SLOTS = 3, SPARES = 8, HEADER_BYTES_MAX = 1 << 20, AFTER_A_MISS_MAX = 32 };

/* Ownership of what a job touches: IDLE and DONE the step's, BUSY the job's. */
typedef enum job_state { JOB_IDLE, JOB_BUSY, JOB_DONE } job_state;

typedef struct read_slot {
    ck_io_job job;
    ck_file_reader *reader;
    _Atomic int state;
    ck_buffer *buffer;
    uint64_t offset;
    size_t want, got;
    bool ended; /* standard input */
    ck_status status;
    ck_error error;
} read_slot;

typedef struct open_result {
    ck_io_job job;
    ck_file_reader *reader;
    _Atomic int state;
    ck_status status; /* CK_AGAIN: the header has not come yet */
    ck_error error;
} open_result;

struct ck_file_reader {
    ck_mem mem;
    ck_op_ctx *ctx;
    const ck_file_split *split;
    const char *format;
    bool wants_header, opened, is_stdin;
    ck_stdin *input; /* standard input: the jobs' */
    /* compressed: the jobs' */
    ck_unpacker *unpacker;
    size_t rest, rest_end; /* of `header`: bytes behind the header that are not read yet */
    uint64_t skip;         /* bytes to drop before the position */
    open_result open;      /* also used to look whether a followed file has grown */
    ck_file *file;
    char *header; /* HEADER_BYTES_MAX at most */
    size_t header_bytes, header_capacity;
    uint64_t start, inode, known_bytes;
    read_slot slots[SLOTS];
    unsigned depth;
    uint64_t head, tail;  /* slots taken and submitted, counted from the start */
    uint64_t next_offset; /* of the next read */
    unsigned not_here;    /* reads to come that are not tried in the step */
    unsigned after_miss;  /* how many that are the next time */
    bool last_here;       /* the last one was made in the step */
    bool ended;
    ck_buffer *spares[SPARES]; /* handed out before; reused when nobody else holds them */
    unsigned spare_turn;
};

static bool is_packed(const ck_file_reader *r) { return r->split->compression != CK_COMPRESSION_NONE; }
static bool follows(const ck_file_reader *r) { return r->split->end == UINT64_MAX && !r->is_stdin && !is_packed(r); }

/* ---- jobs: opening ---- */

/* The first record of the file into r->header: CK_MORE when it has no end yet. */
static ck_status read_header(ck_file_reader *r, uint64_t from, uint64_t bytes, uint64_t *behind, ck_error *err) {
    ck_fs *fs = r->ctx->proc->fs;
    bool in_quotes = false;
    size_t have = 0;
    for (;;) {
        size_t room = r->header_capacity - have, got, skip;
        if (room == 0)
            return ck_fail(err, CK_DATA, "%s: the header is longer than %d bytes", r->split->path, HEADER_BYTES_MAX);
        size_t step = room < 65536 ? room : 65536;
        CK_TRY(fs->pread(r->file, r->header + have, step, from + have, &got, err));
        ck_status s = got ? ck_format_sync("csv", r->header + have, got, &in_quotes, &skip) : CK_MORE;
        have += s == CK_OK ? skip : got;
        if (s != CK_OK && s != CK_MORE) return s;
        if (s == CK_OK || from + have >= bytes || got == 0) {
            *behind = from + have;
            r->header_bytes = have;
            while (r->header_bytes > 0 &&
                   (r->header[r->header_bytes - 1] == '\n' || r->header[r->header_bytes - 1] == '\r'))
                r->header_bytes--;
            return s;
        }
    }
}

static ck_status check_size(const ck_file_reader *r, const ck_stat *st, ck_error *err) {
    const ck_file_split *s = r->split;
    if (s->inode != 0 && st->inode != s->inode)
        return ck_fail(err, CK_DATA, "%s was replaced by another file while it was followed", s->path);
    uint64_t least = follows(r) ? s->position : s->end;
    if (st->bytes < least)
        return ck_fail(err, CK_DATA, "%s has %llu bytes, fewer than the %llu it had when the job began", s->path,
                       (unsigned long long)st->bytes, (unsigned long long)least);
    return CK_OK;
}

static void trim_header(ck_file_reader *r, size_t end) {
    while (end > 0 && (r->header[end - 1] == '\n' || r->header[end - 1] == '\r')) end--;
    r->header_bytes = end;
}

/* A compressed file is read from its beginning: the header stands there, and what is behind it is kept. */
static ck_status open_packed(ck_file_reader *r, ck_error *err) {
    const ck_file_split *s = r->split;
    bool in_quotes = false, ended = false;
    size_t have = 0, data = 0, got, skip;
    CK_TRY(ck_unpacker_open(r->ctx->proc, s->path, s->compression, r->mem, &r->unpacker, err));
    for (ck_status found = CK_MORE; found == CK_MORE && !ended;) {
        size_t room = r->header_capacity - have, step = room < 65536 ? room : 65536;
        if (room == 0)
            return ck_fail(err, CK_DATA, "%s: the header is longer than %d bytes", s->path, HEADER_BYTES_MAX);
        CK_TRY(ck_unpacker_read(r->unpacker, r->header + have, step, &got, err));
        ended = got < step;
        if (have == 0 && got >= 3 && memcmp(r->header, "\xef\xbb\xbf", 3) == 0) data = 3;
        size_t from = have > data ? have : data;
        have += got;
        if (!r->wants_header) break;
        found = ck_format_sync("csv", r->header + from, have - from, &in_quotes, &skip);
        if (found != CK_OK && found != CK_MORE) return found;
        if (found == CK_OK || ended) {
            memmove(r->header, r->header + data, have - data); /* a view of it begins at 0 */
            size_t behind = (found == CK_OK ? from + skip : have) - data;
            r->rest = behind;
            r->rest_end = have - data;
            trim_header(r, behind);
            data += behind;
        }
    }
    if (!r->wants_header) {
        r->rest = data;
        r->rest_end = have;
    }
    r->start = s->position > data ? s->position : data;
    r->skip = r->start - data;
    return CK_OK;
}

static ck_status open_file(ck_file_reader *r, ck_error *err) {
    ck_fs *fs = r->ctx->proc->fs;
    ck_stat st;
    if (!r->file) CK_TRY(fs->open(fs, r->split->path, CK_OPEN_READ, &r->file, err));
    CK_TRY(fs->fstat(r->file, &st, err));
    CK_TRY(check_size(r, &st, err));
    r->inode = st.inode;
    r->known_bytes = st.bytes;
    char mark[3];
    size_t got;
    CK_TRY(fs->pread(r->file, mark, sizeof mark, 0, &got, err));
    uint64_t data = got == 3 && memcmp(mark, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (r->wants_header) {
        ck_status s = read_header(r, data, st.bytes, &data, err);
        if (s == CK_MORE && follows(r)) return CK_AGAIN;
        if (s != CK_OK && s != CK_MORE) return s;
    }
    r->start = r->split->position > data ? r->split->position : data;
    if (r->split->end < r->start) r->start = r->split->end; /* an empty piece */
    return CK_OK;
}

/* A followed file: has it grown, is it still the same? */
static ck_status look(ck_file_reader *r, ck_error *err) {
    ck_fs *fs = r->ctx->proc->fs;
    ck_stat st, now;
    CK_TRY(fs->fstat(r->file, &st, err));
    ck_status s = fs->stat(fs, r->split->path, &now, err);
    if (s == CK_NOTFOUND) return ck_fail(err, CK_DATA, "%s was removed while it was followed", r->split->path);
    if (s != CK_OK) return s;
    if (now.inode != st.inode || now.device != st.device)
        return ck_fail(err, CK_DATA, "%s was replaced by another file while it was followed", r->split->path);
    if (st.bytes < r->next_offset)
        return ck_fail(err, CK_DATA, "%s was cut to %llu bytes while it was followed; %llu had been read",
                       r->split->path, (unsigned long long)st.bytes, (unsigned long long)r->next_offset);
    r->known_bytes = st.bytes;
    return CK_OK;
}

static void open_run(ck_io_job *j) {
    open_result *o = (open_result *)j;
    ck_file_reader *r = o->reader;
    o->error = CK_ERROR_INIT;
    o->status = r->opened ? look(r, &o->error) : is_packed(r) ? open_packed(r, &o->error) : open_file(r, &o->error);
}

static void open_done(ck_io_job *j) {
    open_result *o = (open_result *)j;
    ck_op_ctx *ctx = o->reader->ctx;
    atomic_store_explicit(&o->state, JOB_DONE, memory_order_release);
    ck_op_wake(ctx, ctx->rt);
}

/* ---- jobs: reading ---- */

/* The next bytes of a compressed file, those before the position dropped: nothing may be left of a read. */
static ck_status read_packed(read_slot *s, ck_error *err) {
    ck_file_reader *r = s->reader;
    char *to = (char *)s->buffer->p + CK_READ_HEADROOM;
    size_t rest = r->rest_end - r->rest, n = rest < s->want ? rest : s->want, got;
    if (n) memcpy(to, r->header + r->rest, n);
    r->rest += n;
    CK_TRY(ck_unpacker_read(r->unpacker, to + n, s->want - n, &got, err));
    n += got;
    s->ended = n < s->want;
    size_t drop = r->skip < n ? (size_t)r->skip : n;
    if (drop) memmove(to, to + drop, n - drop);
    r->skip -= drop;
    s->got = n - drop;
    if (s->ended && r->skip > 0)
        return ck_fail(err, CK_DATA,
                       "%s ends before byte %llu of what it holds; it was longer when the job was stopped",
                       r->split->path, (unsigned long long)r->start);
    return CK_OK;
}

static void read_run(ck_io_job *j) {
    read_slot *s = (read_slot *)j;
    ck_file_reader *r = s->reader;
    s->error = CK_ERROR_INIT;
    s->got = 0;
    s->ended = false;
    if (r->is_stdin) {
        char *to = (char *)s->buffer->p + CK_READ_HEADROOM;
        s->status = ck_stdin_read(r->input, to, s->want, &s->got, &s->ended, &s->error);
        return;
    }
    if (is_packed(r)) {
        s->status = read_packed(s, &s->error);
        return;
    }
    ck_fs *fs = r->ctx->proc->fs;
    s->status = fs->pread(r->file, s->buffer->p + CK_READ_HEADROOM, s->want, s->offset, &s->got, &s->error);
    if (s->status == CK_OK && s->got < s->want)
        s->status = ck_fail(&s->error, CK_DATA, "%s ends at byte %llu; it was longer when the job began",
                            r->split->path, (unsigned long long)(s->offset + s->got));
}

static void read_done(ck_io_job *j) {
    read_slot *s = (read_slot *)j;
    ck_op_ctx *ctx = s->reader->ctx;
    atomic_store_explicit(&s->state, JOB_DONE, memory_order_release);
    ck_op_wake(ctx, ctx->rt);
}

/* ---- the step ---- */

static job_state state_of(_Atomic int *state) { return (job_state)atomic_load_explicit(state, memory_order_acquire); }

static void submit_open(ck_file_reader *r) {
    r->open.job = (ck_io_job){open_run, open_done, NULL};
    r->open.reader = r;
    atomic_store_explicit(&r->open.state, JOB_BUSY, memory_order_relaxed);
    ck_op_submit_io(r->ctx, &r->open.job);
}

ck_status ck_file_reader_new(const ck_reader_config *c, ck_mem mem, ck_file_reader **out, ck_error *err) {
    ck_file_reader *r = ck_alloc_zero(mem, sizeof *r);
    if (!r) return ck_nomem(err, mem, sizeof *r);
    r->mem = mem;
    r->ctx = c->ctx;
    r->split = c->split;
    r->format = c->format;
    r->is_stdin = strcmp(c->split->path, CK_STDIN_PATH) == 0;
    r->wants_header = c->header && !r->is_stdin; /* there the decoder meets it in the stream */
    r->depth = c->split->end == UINT64_MAX ? 1 : SLOTS;
    if (r->wants_header || is_packed(r)) {
        r->header_capacity = HEADER_BYTES_MAX;
        if (!(r->header = ck_alloc(mem, r->header_capacity))) {
            ck_free(mem, r, sizeof *r);
            return ck_nomem(err, mem, HEADER_BYTES_MAX);
        }
    }
    if (r->is_stdin) {
        ck_status s = ck_stdin_new(c->compression, mem, &r->input, err);
        if (s != CK_OK) {
            ck_free(mem, r, sizeof *r);
            return s;
        }
        r->start = c->split->position;
        atomic_store_explicit(&r->open.state, JOB_DONE, memory_order_relaxed);
    } else {
        submit_open(r);
    }
    *out = r;
    return CK_OK;
}

static ck_buffer *take_buffer(ck_file_reader *r) {
    for (unsigned i = 0; i < SPARES; i++) {
        ck_buffer *b = r->spares[i];
        if (b && atomic_load_explicit(&b->refs, memory_order_acquire) == 1) return ck_buffer_ref(b);
    }
    ck_buffer *b = ck_buffer_new(r->mem, CK_READ_BUFFER_BYTES);
    if (!b) return NULL;
    ck_buffer **keep = &r->spares[r->spare_turn++ % SPARES];
    ck_buffer_unref(keep);
    *keep = ck_buffer_ref(b);
    return b;
}

static uint64_t read_limit(const ck_file_reader *r) {
    if (r->is_stdin || is_packed(r)) return UINT64_MAX;
    return follows(r) ? r->known_bytes : r->split->end;
}

/* What the page cache has is read here: a copy that is still warm when it is decoded costs less than two threads woken.
 * After a miss the next few go to the executor, several at once, so that a disk is read ahead; after more misses in a
 * row, more of them. Then one is tried here, in front of which others may be under way: the kernel says for a moment,
 * too, that a page is not there. */
static bool read_here(ck_file_reader *r, read_slot *s) {
    ck_fs *fs = r->ctx->proc->fs;
    r->last_here = false;
    if (!fs->pread_cached || r->is_stdin || is_packed(r)) return false;
    if (r->not_here > 0) {
        r->not_here--;
        return false;
    }
    if (fs->pread_cached(r->file, s->buffer->p + CK_READ_HEADROOM, s->want, s->offset) != CK_OK) {
        r->not_here = r->after_miss ? r->after_miss : SLOTS - 1;
        r->after_miss = r->not_here * 2 < AFTER_A_MISS_MAX ? r->not_here * 2 : AFTER_A_MISS_MAX;
        return false;
    }
    r->after_miss = 0;
    s->status = CK_OK;
    s->got = s->want;
    s->ended = false;
    r->last_here = true;
    atomic_store_explicit(&s->state, JOB_DONE, memory_order_relaxed);
    return true;
}

static ck_status submit_reads(ck_file_reader *r, ck_error *err) {
    uint64_t limit = read_limit(r);
    if (r->last_here && r->head != r->tail) return CK_OK; /* read here, one at a time, once what is under way is used */
    while (!r->ended && r->tail - r->head < r->depth && r->next_offset < limit) {
        read_slot *s = &r->slots[r->tail % r->depth];
        uint64_t left = limit - r->next_offset;
        if (!s->buffer && !(s->buffer = take_buffer(r))) return ck_nomem(err, r->mem, CK_READ_BUFFER_BYTES);
        s->job = (ck_io_job){read_run, read_done, NULL};
        s->reader = r;
        s->offset = r->next_offset;
        s->want = left < CK_READ_BYTES ? (size_t)left : CK_READ_BYTES;
        bool here = read_here(r, s);
        if (!r->is_stdin && !is_packed(r)) r->next_offset += s->want;
        r->tail++;
        if (here) return CK_OK;
        atomic_store_explicit(&s->state, JOB_BUSY, memory_order_relaxed);
        ck_op_submit_io(r->ctx, &s->job);
    }
    return CK_OK;
}

ck_status ck_file_reader_ready(ck_file_reader *r, ck_view *header, ck_error *err) {
    if (!r->opened) {
        job_state state = state_of(&r->open.state);
        if (state == JOB_BUSY) return CK_AGAIN;
        if (state == JOB_IDLE) return CK_MORE;
        atomic_store_explicit(&r->open.state, JOB_IDLE, memory_order_relaxed);
        if (r->open.status == CK_AGAIN) return CK_MORE;
        if (r->open.status != CK_OK) {
            if (err) *err = r->open.error;
            return r->open.status;
        }
        r->opened = true;
        r->next_offset = r->start;
        CK_TRY(submit_reads(r, err));
    }
    *header = (ck_view){r->header, r->header_bytes};
    return CK_OK;
}

uint64_t ck_file_reader_start(const ck_file_reader *r) { return r->start; }
uint64_t ck_file_reader_inode(const ck_file_reader *r) { return r->inode; }

void ck_file_reader_look(ck_file_reader *r) {
    if (state_of(&r->open.state) == JOB_IDLE) submit_open(r);
}

/* Nothing is under way: the end, or the edge of a followed file. CK_OK: now something is, or is there already. */
static ck_status at_edge(ck_file_reader *r, ck_error *err) {
    if (!follows(r)) return CK_CLOSED;
    job_state state = state_of(&r->open.state);
    if (state == JOB_BUSY) return CK_AGAIN;
    if (state == JOB_IDLE) return CK_MORE;
    atomic_store_explicit(&r->open.state, JOB_IDLE, memory_order_relaxed);
    if (r->open.status != CK_OK) {
        if (err) *err = r->open.error;
        return r->open.status;
    }
    CK_TRY(submit_reads(r, err));
    return r->head == r->tail ? CK_MORE : CK_OK;
}

ck_status ck_file_reader_next(ck_file_reader *r, ck_read_chunk *out, ck_error *err) {
    if (r->head == r->tail) CK_TRY(at_edge(r, err));
    read_slot *s = &r->slots[r->head % r->depth];
    if (state_of(&s->state) == JOB_BUSY) return CK_AGAIN;
    if (s->status != CK_OK) {
        if (err) *err = s->error;
        return s->status;
    }
    r->ended = r->ended || s->ended;
    r->head++;
    if (s->got == 0) { /* standard input, a compressed file; the buffer stays for the next try */
        CK_TRY(submit_reads(r, err));
        if (r->ended) return CK_CLOSED;
        bool here = r->head != r->tail && state_of(&r->slots[r->head % r->depth].state) != JOB_BUSY;
        return here ? ck_file_reader_next(r, out, err) : CK_AGAIN; /* what was read here wakes nobody */
    }
    *out = (ck_read_chunk){s->buffer, CK_READ_HEADROOM, CK_READ_HEADROOM + s->got, s->offset};
    s->buffer = NULL;
    if (r->is_stdin || is_packed(r)) r->next_offset += s->got;
    ck_status status = submit_reads(r, err);
    if (status != CK_OK) ck_buffer_unref(&out->buffer);
    return status;
}

bool ck_file_reader_drains(const ck_file_reader *r) {
    return r->opened && !follows(r) && (is_packed(r) ? r->ended : r->next_offset >= read_limit(r));
}

bool ck_file_reader_busy(const ck_file_reader *r) {
    bool busy = atomic_load_explicit(&r->open.state, memory_order_acquire) == JOB_BUSY;
    for (unsigned i = 0; i < SLOTS; i++)
        busy = busy || atomic_load_explicit(&r->slots[i].state, memory_order_acquire) == JOB_BUSY;
    return busy;
}

void ck_file_reader_free(ck_file_reader *r) {
    if (!r) return;
    CK_ASSERT(!ck_file_reader_busy(r));
    if (r->file) r->ctx->proc->fs->close(r->file);
    ck_unpacker_free(r->unpacker);
    ck_stdin_free(r->input);
    for (unsigned i = 0; i < SLOTS; i++) ck_buffer_unref(&r->slots[i].buffer);
    for (unsigned i = 0; i < SPARES; i++) ck_buffer_unref(&r->spares[i]);
    if (r->header) ck_free(r->mem, r->header, r->header_capacity);
    ck_free(r->mem, r, sizeof *r);
}
