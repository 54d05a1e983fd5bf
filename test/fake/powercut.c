/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that loses power, as a library to preload.
 *
 * CUT_DIR   the folder that is "on the disk"; only files in it are looked at
 * CUT_IMAGE a folder that holds what a real disk would surely hold; written at the cut
 * CUT_AT    the process dies at its n-th sync (fsync or fdatasync) of a file or folder in CUT_DIR, counting
 * from 1; 0: never, and the image is kept up to date all the time CUT_LATE  1: after that sync took effect,
 * else before CUT_TORN  what the disk did without being told: "lost" nothing that was not synced is there;
 * "names" new names are there, the content of unsynced files is empty; "torn" new names are there, with half of
 * the content CUT_FULL  a path; while such a file exists, every write in CUT_DIR fails with ENOSPC
 *
 * Content is durable once its file was synced, a name once its folder was. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 64
#define BYTES 65536

struct content { /* what the disk holds of an inode */
    ino_t ino;
    size_t n;
    char data[BYTES];
};
struct name {
    char name[128];
    ino_t ino;
};

static struct content content[FILES];
static struct name name[FILES];
static size_t n_content, n_name;
static char dir[512], image[512], full[512], torn[16];
static long cut_at, late, syncs;
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static ssize_t (*real_write)(int, const void *, size_t);

static void *symbol(const char *what)
{
    void *f = dlsym(RTLD_NEXT, what);
    if (!f)
        abort();
    return f;
}

static void env(const char *key, char *into, size_t size)
{
    const char *v = getenv(key);
    (void)snprintf(into, size, "%s", v ? v : "");
}

static struct content *of(ino_t ino)
{
    for (size_t i = 0; i < n_content; i++)
        if (content[i].ino == ino)
            return &content[i];
    if (n_content == FILES)
        abort();
    content[n_content] = (struct content){.ino = ino};
    return &content[n_content++];
}

static size_t load(const char *path, char *into)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, into, BYTES);
    if (fd >= 0)
        close(fd);
    return n > 0 ? (size_t)n : 0;
}

static void take_content(const char *path, ino_t ino)
{
    struct content *c = of(ino);
    c->n = load(path, c->data);
}

static void take_names(int with_content)
{
    DIR *d = opendir(dir);
    n_name = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_type != DT_REG || n_name == FILES || strlen(e->d_name) >= sizeof name->name)
            continue;
        memcpy(name[n_name].name, e->d_name, strlen(e->d_name) + 1);
        name[n_name].ino = e->d_ino;
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (with_content)
            take_content(path, e->d_ino);
        n_name++;
    }
    if (d)
        closedir(d);
}

static void __attribute__((constructor)) begin(void)
{
    char number[32];
    real_fsync = (int (*)(int))symbol("fsync");
    real_fdatasync = (int (*)(int))symbol("fdatasync");
    real_write = (ssize_t(*)(int, const void *, size_t))symbol("write");
    env("CUT_DIR", dir, sizeof dir);
    env("CUT_IMAGE", image, sizeof image);
    env("CUT_FULL", full, sizeof full);
    env("CUT_TORN", torn, sizeof torn);
    env("CUT_AT", number, sizeof number);
    cut_at = strtol(number, NULL, 10);
    env("CUT_LATE", number, sizeof number);
    late = strtol(number, NULL, 10);
    if (dir[0])
        take_names(1); /* what is there at the start has long been on the disk */
}

static void put_file(const char *file, const char *data, size_t n)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", image, file);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || real_write(fd, data, n) != (ssize_t)n)
        abort();
    close(fd);
}

static void lose_power(void)
{
    static char now[BYTES];
    int names_too = strcmp(torn, "names") == 0 || strcmp(torn, "torn") == 0;
    if (names_too)
        take_names(0); /* the disk had written its folder by itself */
    for (size_t i = 0; i < n_name; i++) {
        const struct content *c = of(name[i].ino);
        char path[1024];
        (void)snprintf(path, sizeof path, "%s/%s", dir, name[i].name);
        size_t n = load(path, now);
        if (names_too && n > c->n && memcmp(now, c->data, c->n) == 0) /* grown or new, and not synced */
            put_file(name[i].name, now, strcmp(torn, "torn") == 0 ? c->n + (n - c->n) / 2 : c->n);
        else
            put_file(name[i].name, c->data, c->n);
    }
    _exit(99);
}

/* Path of a descriptor when it lies in the folder (or is the folder); NULL else. */
static const char *inside(int fd, char buf[static 1024])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, 1023);
    if (!dir[0] || n <= 0)
        return NULL;
    buf[n] = '\0';
    size_t m = strlen(dir);
    return strncmp(buf, dir, m) == 0 && (buf[m] == '/' || buf[m] == '\0') ? buf : NULL;
}

static int sync_with(int (*real)(int), int fd)
{
    char path[1024];
    struct stat st;
    const char *at = inside(fd, path);
    if (!at || fstat(fd, &st) != 0)
        return real(fd);
    syncs++;
    if (cut_at == syncs && !late)
        lose_power();
    if (S_ISDIR(st.st_mode))
        take_names(0);
    else
        take_content(at, st.st_ino);
    if (cut_at == syncs)
        lose_power();
    return real(fd);
}

int fsync(int fd)
{
    return sync_with(real_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_with(real_fdatasync, fd);
}

ssize_t write(int fd, const void *data, size_t n)
{
    char path[1024];
    if (full[0] && access(full, F_OK) == 0 && inside(fd, path)) {
        errno = ENOSPC;
        return -1;
    }
    return real_write(fd, data, n);
}
