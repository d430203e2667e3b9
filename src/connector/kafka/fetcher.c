/* See fetcher.h. A turn of the thread: ask the library who leads what is not known, begin a connection or a request
 * where one can be, wait, take what came. A broker has one request under way, and two answers at most: one that is
 * read, and one that comes meanwhile. */
#include "connector/kafka/fetcher.h"

#include <stdio.h>

#include "connector/kafka/batches.h"
#include "connector/kafka/fetch.h"
#include "os/clock.h"
#include "os/socket.h"
#include "os/thread.h"

enum {
    ANSWERS = 2,
    HEAD_BYTES = 4,
    ANSWER_BYTES_MAX = 100000000, /* as the library has it */
    REQUEST_BYTES_MAX = 64 << 20,
    KEPT_BYTES_MAX = 4 << 20, /* by an answer's buffer, between two */
    LOOK_MS = 200,
    PAUSE_MIN_US = 50000,
    PAUSE_MAX_US = 1000000,
    SILENT_US_MAX = 60000000,
    IDLE_US = 1000000,
    EVENTS = 16,
};

static const ck_kafka_fetch_limits limits = {.wait_ms = 500, .bytes_max = 1 << 20, .partition_bytes_max = 1 << 20};

/* An answer and its chunks. */
typedef struct ck_kafka_response {
    uint8_t *bytes;
    size_t capacity;
    ck_kafka_chunk *chunks;
    uint32_t chunk_capacity;
    uint32_t left; /* chunks that are not given back; guarded by the fetcher's lock. 0: it is free */
} ck_kafka_response;

typedef struct broker {
    struct broker *next;
    int32_t node;
    char address[288];
    ck_socket *socket;
    bool connected, proven; /* proven: it has answered */
    int64_t retry_us, pause_us;
    /* the request under way */
    ck_kafka_response *under_way;
    ck_bytes request;
    size_t sent;
    uint32_t number;
    int64_t heard_us; /* or asked */
    uint8_t head[HEAD_BYTES];
    size_t got, bytes; /* of the answer, head and all; 0: not known yet */
    ck_kafka_response answers[ANSWERS];
} broker;

struct ck_kafka_fetcher {
    ck_kafka_client *client;
    rd_kafka_topic_t *topic;
    const char *name;
    ck_mem mem;
    ck_op_ctx *ctx;
    ck_poller *poller;
    pthread_t thread;
    pthread_mutex_t lock; /* guards feeds, what is in them, answers' left, and the next four */
    ck_kafka_feed **feeds;
    uint32_t count, capacity;
    bool stopping;
    bool starved;  /* the thread waits for an answer that is free */
    size_t failed; /* bytes that there was no memory for */
    /* of the thread */
    broker *brokers;
    uint32_t turn; /* whose batches come first in an answer */
    int64_t look_us;
};

static bool is_wanted(const ck_kafka_feed *feed) { return !feed->off && !feed->refused && feed->next < feed->end; }

/* ---- what the source is told ---- */

static void wake_source(ck_kafka_fetcher *f) { ck_op_wake(f->ctx, f->ctx->rt); }

static void out_of_memory(ck_kafka_fetcher *f, size_t bytes) {
    pthread_mutex_lock(&f->lock);
    f->failed = bytes;
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    wake_source(f);
}

/* All of them are the library's from here on. */
static void give_up(ck_kafka_fetcher *f) {
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < f->count; i++) f->feeds[i]->refused |= is_wanted(f->feeds[i]);
    pthread_mutex_unlock(&f->lock);
    wake_source(f);
}

/* ---- leaders ---- */

static ck_kafka_feed *feed_of(ck_kafka_fetcher *f, int32_t partition, uint32_t *hint) {
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t at = (*hint + i) % f->count;
        if (f->feeds[at]->partition != partition) continue;
        *hint = at + 1;
        return f->feeds[at];
    }
    return NULL;
}

static broker *find_broker(ck_kafka_fetcher *f, int32_t node) {
    for (broker *b = f->brokers; b; b = b->next)
        if (b->node == node) return b;
    return NULL;
}

static broker *add_broker(ck_kafka_fetcher *f, int32_t node) {
    broker *b = ck_alloc_zero(f->mem, sizeof *b);
    if (!b) return NULL;
    b->node = node;
    b->pause_us = PAUSE_MIN_US;
    ck_bytes_init(&b->request, f->mem, REQUEST_BYTES_MAX);
    b->next = f->brokers;
    return f->brokers = b;
}

static void learn_address(ck_kafka_fetcher *f, const struct rd_kafka_metadata_broker *m) {
    broker *b = find_broker(f, m->id);
    if (!b && !(b = add_broker(f, m->id))) {
        out_of_memory(f, sizeof *b);
        return;
    }
    if (b->socket) return; /* where it is connected to, it is */
    bool v6 = strchr(m->host, ':') != NULL;
    snprintf(b->address, sizeof b->address, v6 ? "[%s]:%d" : "%s:%d", m->host, m->port);
}

/* Under the lock. */
static void learn_leaders(ck_kafka_fetcher *f, const struct rd_kafka_metadata_topic *t) {
    uint32_t hint = 0;
    for (int i = 0; i < t->partition_cnt; i++) {
        ck_kafka_feed *feed = feed_of(f, t->partitions[i].id, &hint);
        if (feed && feed->leader < 0 && find_broker(f, t->partitions[i].leader)) feed->leader = t->partitions[i].leader;
    }
}

static void look_for_leaders(ck_kafka_fetcher *f) {
    const ck_kafka_lib *lib = f->client->lib;
    const struct rd_kafka_metadata *md = NULL;
    rd_kafka_resp_err_t code = lib->rd_kafka_metadata(f->client->rk, 0, f->topic, &md, LOOK_MS);
    f->look_us = ck_mono_us(f->client->proc) + PAUSE_MIN_US;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return;
    for (int i = 0; i < md->broker_cnt; i++) learn_address(f, &md->brokers[i]);
    pthread_mutex_lock(&f->lock);
    if (md->topic_cnt == 1) learn_leaders(f, &md->topics[0]);
    pthread_mutex_unlock(&f->lock);
    if (md->topic_cnt == 1 && md->topics[0].err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) give_up(f);
    lib->rd_kafka_metadata_destroy(md);
}

static bool lacks_leaders(ck_kafka_fetcher *f) {
    bool lacks = false;
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < f->count && !lacks; i++) lacks = is_wanted(f->feeds[i]) && f->feeds[i]->leader < 0;
    pthread_mutex_unlock(&f->lock);
    return lacks;
}

/* ---- a connection ---- */

/* The broker is left alone for a moment, and who leads its partitions is asked for again. refuse: they are not fetched
 * from it any more. */
static void disconnect(ck_kafka_fetcher *f, broker *b, bool refuse) {
    ck_socket_close(b->socket);
    b->socket = NULL;
    b->connected = false;
    b->under_way = NULL;
    b->retry_us = ck_mono_us(f->client->proc) + b->pause_us;
    if (b->pause_us < PAUSE_MAX_US) b->pause_us *= 2;
    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < f->count; i++) {
        ck_kafka_feed *feed = f->feeds[i];
        if (feed->leader != b->node) continue;
        feed->asked = false;
        if (refuse && is_wanted(feed))
            feed->refused = true;
        else
            feed->leader = -1;
    }
    pthread_mutex_unlock(&f->lock);
    if (refuse) wake_source(f);
}

/* Somebody who hangs up at our first request does not speak this version, or not with us. */
static void hung_up(ck_kafka_fetcher *f, broker *b) { disconnect(f, b, b->under_way && !b->proven); }

static void watch(ck_kafka_fetcher *f, broker *b) {
    bool sending = b->under_way && b->sent < b->request.n;
    if (ck_poller_set(f->poller, b->socket, b->connected, !b->connected || sending, b, NULL) != CK_OK)
        disconnect(f, b, false);
}

static void connect_to(ck_kafka_fetcher *f, broker *b) {
    b->connected = false;
    if (ck_socket_connect(f->client->proc, b->address, &b->socket, NULL) != CK_OK) {
        b->socket = NULL;
        disconnect(f, b, false);
        return;
    }
    watch(f, b);
}

/* ---- a request ---- */

static uint32_t count_wanted(const ck_kafka_fetcher *f, const broker *b) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->count; i++) n += is_wanted(f->feeds[i]) && f->feeds[i]->leader == b->node;
    return n;
}

static ck_status write_request(ck_kafka_fetcher *f, broker *b, uint32_t wanted) {
    CK_TRY(ck_kafka_fetch_begin(&b->request, ++b->number, &limits, f->name, wanted));
    for (uint32_t i = 0; i < f->count; i++) {
        ck_kafka_feed *feed = f->feeds[(f->turn + i) % f->count];
        if (!is_wanted(feed) || feed->leader != b->node) continue;
        CK_TRY(ck_kafka_fetch_partition(&b->request, &limits, feed->partition, feed->next));
        feed->asked = true;
    }
    return ck_kafka_fetch_end(&b->request);
}

static ck_status make_chunks(ck_kafka_fetcher *f, ck_kafka_response *r, uint32_t count) {
    if (count <= r->chunk_capacity) return CK_OK;
    void *chunks = ck_alloc_array(f->mem, count, sizeof *r->chunks);
    if (!chunks) return CK_NOMEM;
    ck_free(f->mem, r->chunks, r->chunk_capacity * sizeof *r->chunks);
    r->chunks = chunks;
    r->chunk_capacity = count;
    return CK_OK;
}

/* CK_AGAIN: nothing is wanted, or no answer is free. */
static ck_status make_request(ck_kafka_fetcher *f, broker *b) {
    ck_kafka_response *r = NULL;
    ck_status s = CK_AGAIN;
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < ANSWERS && !r; i++)
        if (b->answers[i].left == 0) r = &b->answers[i];
    uint32_t wanted = count_wanted(f, b);
    f->starved |= wanted && !r;
    if (r && wanted) s = make_chunks(f, r, wanted);
    if (s == CK_OK) s = write_request(f, b, wanted);
    pthread_mutex_unlock(&f->lock);
    if (s == CK_OK) b->under_way = r;
    return s;
}

static void send_request(ck_kafka_fetcher *f, broker *b) {
    size_t n = 0;
    ck_status s = ck_socket_write(b->socket, b->request.p + b->sent, b->request.n - b->sent, &n, NULL);
    if (s != CK_OK && s != CK_AGAIN) {
        hung_up(f, b);
        return;
    }
    b->sent += n;
    watch(f, b);
}

static void ask(ck_kafka_fetcher *f, broker *b, int64_t now) {
    ck_status s = make_request(f, b);
    if (s == CK_AGAIN) return;
    if (s != CK_OK) {
        out_of_memory(f, b->request.n);
        return;
    }
    b->sent = b->got = b->bytes = 0;
    b->heard_us = now;
    send_request(f, b);
}

/* ---- an answer ---- */

/* Who leads it may have changed, or not be known for a moment. */
static bool passes(int16_t error) {
    switch (error) {
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE: return true;
    default: return false;
    }
}

/* Under the lock. What a partition has in the answer becomes its next chunk. */
static void take_part(ck_kafka_feed *feed, const ck_kafka_answer_part *part, ck_kafka_response *r) {
    feed->asked = false;
    if (!is_wanted(feed)) return;
    if (part->error && passes(part->error)) {
        feed->leader = -1;
        return;
    }
    int64_t end = ck_kafka_batches_end(part->batches, feed->next);
    if (part->error || part->aborted || (part->batches.n && end == feed->next)) {
        feed->refused = true;
        return;
    }
    feed->high = part->high;
    feed->at_end = end >= (part->stable < 0 ? part->high : part->stable);
    if (end == feed->next) return;
    ck_kafka_chunk *chunk = &r->chunks[r->left++];
    *chunk = (ck_kafka_chunk){.of = r, .batches = part->batches, .end = end};
    *(feed->last ? &feed->last->next : &feed->first) = chunk;
    feed->last = chunk;
    feed->next = end;
}

/* CK_CORRUPT: it is none that we understand. *some: the source has something to do. */
static ck_status take_answer(ck_kafka_fetcher *f, const broker *b, ck_kafka_response *r, bool *some) {
    ck_view bytes = {(const char *)r->bytes, b->bytes - HEAD_BYTES};
    ck_kafka_answer answer;
    ck_kafka_answer_part part;
    int16_t error = 0;
    if (!ck_kafka_answer_open(&answer, bytes, b->number, &error) || error) return CK_CORRUPT;
    ck_status s;
    uint32_t hint = f->turn, refused = 0;
    pthread_mutex_lock(&f->lock);
    while ((s = ck_kafka_answer_next(&answer, &part)) == CK_OK) {
        ck_kafka_feed *feed = feed_of(f, part.partition, &hint);
        if (!feed || !feed->asked || feed->leader != b->node) continue; /* each is taken once */
        take_part(feed, &part, r);
        refused += feed->refused;
    }
    f->turn = f->count ? (f->turn + (r->left ? r->left : 1)) % f->count : 0;
    *some = r->left > 0 || refused > 0;
    pthread_mutex_unlock(&f->lock);
    return s == CK_NOTFOUND ? CK_OK : s;
}

static void answered(ck_kafka_fetcher *f, broker *b) {
    bool some = false;
    ck_kafka_response *r = b->under_way;
    b->under_way = NULL;
    ck_status s = take_answer(f, b, r, &some);
    if (s == CK_OK) {
        b->proven = true;
        b->pause_us = PAUSE_MIN_US;
    } else {
        disconnect(f, b, true);
    }
    if (some) wake_source(f);
}

static bool make_buffer(ck_kafka_fetcher *f, ck_kafka_response *r, size_t bytes) {
    if (bytes <= r->capacity && r->capacity <= KEPT_BYTES_MAX) return true;
    ck_free(f->mem, r->bytes, r->capacity);
    size_t want = bytes < limits.bytes_max + (64 << 10) ? limits.bytes_max + (64 << 10) : bytes;
    r->bytes = ck_alloc(f->mem, want);
    r->capacity = r->bytes ? want : 0;
    return r->bytes != NULL;
}

/* The answer's number of bytes is known. */
static bool begin_answer(ck_kafka_fetcher *f, broker *b) {
    size_t bytes = (size_t)b->head[0] << 24 | (size_t)b->head[1] << 16 | (size_t)b->head[2] << 8 | b->head[3];
    if (bytes > ANSWER_BYTES_MAX) { /* the library says so */
        disconnect(f, b, true);
        return false;
    }
    b->bytes = bytes + HEAD_BYTES;
    if (make_buffer(f, b->under_way, bytes)) return true;
    out_of_memory(f, bytes);
    return false;
}

/* false: there is no more now. */
static bool receive_some(ck_kafka_fetcher *f, broker *b) {
    uint8_t *to = b->got < HEAD_BYTES ? b->head + b->got : b->under_way->bytes + (b->got - HEAD_BYTES);
    size_t n = 0, room = b->got < HEAD_BYTES ? HEAD_BYTES - b->got : b->bytes - b->got;
    ck_status s = ck_socket_read(b->socket, to, room, &n, NULL);
    if (s == CK_AGAIN) return false;
    if (s != CK_OK) {
        hung_up(f, b);
        return false;
    }
    b->got += n;
    b->heard_us = ck_mono_us(f->client->proc);
    if (b->got == HEAD_BYTES && !begin_answer(f, b)) return false;
    if (b->got < HEAD_BYTES || b->got < b->bytes) return n == room; /* a short read has taken all there was */
    answered(f, b);
    return false;
}

static void receive(ck_kafka_fetcher *f, broker *b) {
    if (!b->under_way) { /* nobody asked: it has hung up, or is no broker */
        hung_up(f, b);
        return;
    }
    while (receive_some(f, b)) {
    }
}

/* ---- the thread ---- */

static void on_event(ck_kafka_fetcher *f, broker *b, const ck_poll_event *e) {
    if (!b->socket) return; /* closed in this turn */
    if (!b->connected) {
        if (ck_socket_connected(b->socket, NULL) != CK_OK) {
            disconnect(f, b, false);
            return;
        }
        b->connected = true;
        watch(f, b);
        return;
    }
    if (e->writable && b->under_way && b->sent < b->request.n) send_request(f, b);
    if (b->socket && (e->readable || e->closed)) receive(f, b);
}

/* What can be begun with a broker. */
static void tend(ck_kafka_fetcher *f, broker *b, int64_t now, int64_t *until) {
    pthread_mutex_lock(&f->lock);
    uint32_t wanted = f->stopping ? 0 : count_wanted(f, b);
    pthread_mutex_unlock(&f->lock);
    if (b->under_way && now - b->heard_us > SILENT_US_MAX) disconnect(f, b, false);
    if (!b->socket && wanted && now >= b->retry_us) connect_to(f, b);
    if (!b->socket && wanted && b->retry_us < *until) *until = b->retry_us;
    if (b->connected && !b->under_way && wanted) ask(f, b, now);
}

static bool is_stopping(ck_kafka_fetcher *f) {
    pthread_mutex_lock(&f->lock);
    bool stopping = f->stopping;
    pthread_mutex_unlock(&f->lock);
    return stopping;
}

static void *run(void *arg) {
    ck_kafka_fetcher *f = arg;
    ck_poll_event events[EVENTS];
    while (!is_stopping(f)) {
        int64_t now = ck_mono_us(f->client->proc);
        bool lacks = lacks_leaders(f);
        if (lacks && now >= f->look_us) {
            look_for_leaders(f);
            lacks = lacks_leaders(f);
            now = ck_mono_us(f->client->proc);
        }
        int64_t until = lacks ? f->look_us : now + IDLE_US;
        for (broker *b = f->brokers; b; b = b->next) tend(f, b, now, &until);
        size_t n = 0;
        int wait_ms = until > now ? (int)((until - now + 999) / 1000) : 0;
        if (ck_poller_wait(f->poller, events, EVENTS, wait_ms, &n, NULL) != CK_OK) {
            give_up(f);
            break;
        }
        for (size_t i = 0; i < n; i++) on_event(f, events[i].tag, &events[i]);
    }
    return NULL;
}

/* ---- the source's side ---- */

ck_status ck_kafka_fetcher_new(ck_kafka_client *client, rd_kafka_topic_t *topic, const char *name, ck_mem mem,
                               ck_op_ctx *ctx, ck_kafka_fetcher **out, ck_error *err) {
    ck_kafka_fetcher *f = ck_alloc_zero(mem, sizeof *f);
    if (!f) return ck_nomem(err, mem, sizeof *f);
    *f = (ck_kafka_fetcher){.client = client, .topic = topic, .name = name, .mem = mem, .ctx = ctx};
    ck_status s = ck_poller_new(client->proc, &f->poller, err);
    if (s == CK_OK) {
        pthread_mutex_init(&f->lock, NULL);
        s = ck_thread_start(&f->thread, "clink-kafka", run, f, err);
        if (s != CK_OK) pthread_mutex_destroy(&f->lock);
    }
    if (s == CK_OK) {
        *out = f;
        return CK_OK;
    }
    ck_poller_free(f->poller);
    ck_free(mem, f, sizeof *f);
    return s;
}

static void free_broker(ck_kafka_fetcher *f, broker *b) {
    ck_socket_close(b->socket);
    ck_bytes_destroy(&b->request);
    for (int i = 0; i < ANSWERS; i++) {
        ck_free(f->mem, b->answers[i].bytes, b->answers[i].capacity);
        ck_free(f->mem, b->answers[i].chunks, b->answers[i].chunk_capacity * sizeof *b->answers[i].chunks);
    }
    ck_free(f->mem, b, sizeof *b);
}

void ck_kafka_fetcher_free(ck_kafka_fetcher *f) {
    if (!f) return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_mutex_unlock(&f->lock);
    ck_poller_wake(f->poller);
    pthread_join(f->thread, NULL);
    while (f->brokers) {
        broker *b = f->brokers;
        f->brokers = b->next;
        free_broker(f, b);
    }
    ck_poller_free(f->poller);
    pthread_mutex_destroy(&f->lock);
    ck_free(f->mem, f->feeds, f->capacity * sizeof(void *));
    ck_free(f->mem, f, sizeof *f);
}

ck_status ck_kafka_fetcher_add(ck_kafka_fetcher *f, ck_kafka_feed *feed, int32_t partition, int64_t from, int64_t end,
                               ck_error *err) {
    *feed = (ck_kafka_feed){.partition = partition, .leader = -1, .next = from, .end = end, .high = -1};
    ck_status s = CK_OK;
    pthread_mutex_lock(&f->lock);
    if (f->count == f->capacity) {
        uint32_t capacity = f->capacity ? f->capacity * 2 : 16;
        void *feeds = ck_realloc(f->mem, f->feeds, f->capacity * sizeof(void *), capacity * sizeof(void *));
        if (feeds) {
            f->feeds = feeds;
            f->capacity = capacity;
        } else {
            s = ck_nomem(err, f->mem, capacity * sizeof(void *));
        }
    }
    if (s == CK_OK) f->feeds[f->count++] = feed;
    pthread_mutex_unlock(&f->lock);
    if (s == CK_OK) ck_poller_wake(f->poller);
    return s;
}

ck_status ck_kafka_fetcher_take(ck_kafka_fetcher *f, ck_kafka_feed *feed, ck_kafka_ready *out, ck_error *err) {
    pthread_mutex_lock(&f->lock);
    size_t failed = f->failed;
    *out = (ck_kafka_ready){.chunk = feed->first, .high = feed->high};
    if (feed->first && !(feed->first = feed->first->next)) feed->last = NULL;
    out->at_end = !feed->first && feed->at_end;
    out->refused = !out->chunk && feed->refused;
    if (out->refused) feed->off = true;
    pthread_mutex_unlock(&f->lock);
    return failed ? ck_nomem(err, f->mem, failed) : CK_OK;
}

/* Under the lock. Whether the thread waits for this. */
static bool release(ck_kafka_fetcher *f, ck_kafka_chunk *chunk) {
    bool wake = --chunk->of->left == 0 && f->starved;
    if (wake) f->starved = false;
    return wake;
}

void ck_kafka_fetcher_give_back(ck_kafka_fetcher *f, ck_kafka_chunk *chunk) {
    pthread_mutex_lock(&f->lock);
    bool wake = release(f, chunk);
    pthread_mutex_unlock(&f->lock);
    if (wake) ck_poller_wake(f->poller);
}

void ck_kafka_fetcher_drop(ck_kafka_fetcher *f, ck_kafka_feed *feed) {
    bool wake = false;
    pthread_mutex_lock(&f->lock);
    feed->off = true;
    for (ck_kafka_chunk *c = feed->first; c; c = c->next) wake |= release(f, c);
    feed->first = feed->last = NULL;
    pthread_mutex_unlock(&f->lock);
    if (wake) ck_poller_wake(f->poller);
}
