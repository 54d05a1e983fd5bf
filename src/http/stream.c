/* SPDX-License-Identifier: Apache-2.0 */
/* The live stream.
 *
 * A message is made once and counted by those who are still sending it. A reader that has sent its message goes
 * on to the newest, so a slow one skips and never queues; one with nothing to send is suspended in
 * libmicrohttpd and woken by the next broadcast. The decision to suspend and the waking happen under the same
 * lock, so no wake-up is lost. Messages that nobody sends any more are kept and used again: a steady turn takes
 * no memory.
 */
#include "http/http_int.h"
#include "http/serve.h"

#include <microhttpd.h>
#include <pthread.h>

struct message {
    struct message *next; /* while it is spare */
    unsigned users;
    size_t n, room;
    char *data;
};

struct reader {
    struct reader *next, **link;
    struct tw_stream *stream;
    struct MHD_Connection *conn;
    struct message *msg; /* being sent */
    size_t sent;
    uint64_t seq; /* of msg */
    bool asleep;
};

struct tw_stream {
    pthread_mutex_t lock;
    struct reader *readers;
    unsigned n_readers;
    struct message *newest, *spare;
    uint64_t seq; /* of newest */
    bool ended;
};

static void message_free(struct message *m)
{
    if (!m)
        return;
    free(m->data);
    free(m);
}

static void message_drop(struct tw_stream *s, struct message *m)
{
    if (!m || --m->users > 0)
        return;
    m->next = s->spare;
    s->spare = m;
}

/* A message of these bytes with one user, out of the spare ones when there is one. */
static struct message *message_make(struct tw_stream *s, const char *bytes, size_t n)
{
    struct message *m = s->spare;
    if (m)
        s->spare = m->next;
    else
        m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    if (m->room < n || !m->data) {
        size_t room = n + n / 4 + 256;
        char *data = realloc(m->data, room);
        if (!data) {
            message_free(m);
            return NULL;
        }
        m->data = data;
        m->room = room;
    }
    memcpy(m->data, bytes, n);
    m->n = n;
    m->users = 1;
    m->next = NULL;
    return m;
}

struct tw_stream *tw_stream_new(void)
{
    struct tw_stream *s = calloc(1, sizeof *s);
    if (s)
        (void)pthread_mutex_init(&s->lock, NULL);
    return s;
}

void tw_stream_free(struct tw_stream *s)
{
    if (!s)
        return;
    message_free(s->newest);
    while (s->spare) {
        struct message *m = s->spare;
        s->spare = m->next;
        message_free(m);
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static void wake_all(struct tw_stream *s)
{
    for (struct reader *r = s->readers; r; r = r->next)
        if (r->asleep) {
            r->asleep = false;
            MHD_resume_connection(r->conn);
        }
}

void tw_stream_end(struct tw_stream *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->ended = true;
    wake_all(s);
    (void)pthread_mutex_unlock(&s->lock);
}

enum tw_err tw_stream_broadcast(struct tw_stream *s, const char *bytes, size_t n)
{
    (void)pthread_mutex_lock(&s->lock);
    struct message *m = message_make(s, bytes, n);
    if (m) {
        message_drop(s, s->newest);
        s->newest = m;
        s->seq++;
        wake_all(s);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return m ? TW_OK : TW_ENOMEM;
}

unsigned tw_stream_readers(struct tw_stream *s)
{
    (void)pthread_mutex_lock(&s->lock);
    unsigned n = s->n_readers;
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

/* MHD_ContentReaderCallback */
static ssize_t reader_give(void *cls, uint64_t pos, char *buf, size_t max)
{
    (void)pos;
    struct reader *r = cls;
    struct tw_stream *s = r->stream;
    ssize_t give = 0;
    (void)pthread_mutex_lock(&s->lock);
    if (r->msg && r->sent == r->msg->n) {
        message_drop(s, r->msg);
        r->msg = NULL;
    }
    if (!r->msg && s->newest && r->seq != s->seq) {
        r->msg = s->newest;
        r->msg->users++;
        r->seq = s->seq;
        r->sent = 0;
    }
    if (r->msg) {
        size_t n = r->msg->n - r->sent < max ? r->msg->n - r->sent : max;
        memcpy(buf, r->msg->data + r->sent, n);
        r->sent += n;
        give = (ssize_t)n;
    } else if (s->ended) {
        give = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        r->asleep = true;
        MHD_suspend_connection(r->conn);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return give;
}

/* MHD_ContentReaderFreeCallback */
static void reader_free(void *cls)
{
    struct reader *r = cls;
    struct tw_stream *s = r->stream;
    (void)pthread_mutex_lock(&s->lock);
    message_drop(s, r->msg);
    *r->link = r->next;
    if (r->next)
        r->next->link = r->link;
    s->n_readers--;
    (void)pthread_mutex_unlock(&s->lock);
    free(r);
}

struct MHD_Response *tw_stream_response(struct tw_stream *s, struct MHD_Connection *conn, const char *first,
                                        size_t n, bool *ret_full)
{
    struct MHD_Response *resp = NULL;
    struct reader *r = calloc(1, sizeof *r);
    (void)pthread_mutex_lock(&s->lock);
    *ret_full = s->n_readers >= TW_HTTP_MAX_STREAM || s->ended;
    struct message *m = *ret_full || !r ? NULL : message_make(s, first, n);
    if (m) {
        *r = (struct reader){s->readers, &s->readers, s, conn, m, 0, s->seq, false};
        if (s->readers)
            s->readers->link = &r->next;
        s->readers = r;
        s->n_readers++;
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (!m) {
        free(r);
        return NULL;
    }
    resp = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 8192, reader_give, r, reader_free);
    if (!resp)
        reader_free(r);
    return resp;
}
