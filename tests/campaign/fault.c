/* Counts the file operations that touch a given folder and, at the n-th, kills the process,
 * raises a signal or lets the operation fail.  Loaded with LD_PRELOAD; armed by `arm`.
 * Build: cc -O1 -shared -fPIC -o fault.so fault.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum action { NONE, KILL_BEFORE, KILL_AFTER, TORN_WRITE, FAIL, FAIL_FROM_HERE_ON, SIGNAL };

static char folder[512];
static long target = -1, count = 0;
static int action = NONE, detail = 0;

/* `detail` is an errno for the failing actions and a signal number for SIGNAL. */
void arm(const char *where, long at, int what, int number) {
  count = 0, action = what, detail = number;
  snprintf(folder, sizeof folder, "%s", where);
  target = at;
}
long operations(void) { return count; }

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* Returns the action that is due at this operation. */
static int due(const char *path) {
  if (target < 0 || !path || !strstr(path, folder)) return NONE;
  long now = __sync_add_and_fetch(&count, 1);
  if (action == FAIL_FROM_HERE_ON ? now < target : now != target) return NONE;
  if (action == KILL_BEFORE) die();
  if (action == SIGNAL) raise(detail);
  return action;
}
static int due_fd(int fd) {
  char link[64], path[1024];
  if (target < 0) return NONE;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return NONE;
  path[length] = 0;
  return due(path);
}
static int fails(int what) {
  if (what != FAIL && what != FAIL_FROM_HERE_ON) return 0;
  errno = detail;
  return 1;
}

#define REAL(type, name, ...)                       \
  static type (*real)(__VA_ARGS__);                 \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)
#define AROUND(what, call)                          \
  int now = (what);                                 \
  if (fails(now)) return -1;                        \
  __typeof__(call) result = (call);                 \
  if (now == KILL_AFTER) die();                     \
  return result

ssize_t write(int fd, const void *data, size_t size) {
  REAL(ssize_t, "write", int, const void *, size_t);
  int now = due_fd(fd);
  if (fails(now)) return -1;
  if (now == TORN_WRITE) { real(fd, data, size / 2); die(); }
  ssize_t result = real(fd, data, size);
  if (now == KILL_AFTER) die();
  return result;
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
  int now = due_fd(fd);
  if (fails(now)) return -1;
  if (now == TORN_WRITE) { real(fd, data, size / 2, at); die(); }
  ssize_t result = real(fd, data, size, at);
  if (now == KILL_AFTER) die();
  return result;
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *parts, int many) {
  REAL(ssize_t, "writev", int, const struct iovec *, int);
  AROUND(due_fd(fd), real(fd, parts, many));
}
int fsync(int fd) { REAL(int, "fsync", int); AROUND(due_fd(fd), real(fd)); }
int fdatasync(int fd) { REAL(int, "fdatasync", int); AROUND(due_fd(fd), real(fd)); }
int ftruncate64(int fd, off64_t size) {
  REAL(int, "ftruncate64", int, off64_t);
  AROUND(due_fd(fd), real(fd, size));
}
int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }
int rename(const char *from, const char *to) {
  REAL(int, "rename", const char *, const char *);
  AROUND(due(to), real(from, to));
}
int link(const char *from, const char *to) {
  REAL(int, "link", const char *, const char *);
  AROUND(due(to), real(from, to));
}
int unlink(const char *path) { REAL(int, "unlink", const char *); AROUND(due(path), real(path)); }
int mkdir(const char *path, mode_t mode) {
  REAL(int, "mkdir", const char *, mode_t);
  AROUND(due(path), real(path, mode));
}
int open64(const char *path, int flags, ...) {
  REAL(int, "open64", const char *, int, ...);
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  AROUND((flags & (O_CREAT | O_WRONLY | O_RDWR)) ? due(path) : NONE, real(path, flags, mode));
}
int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return open64(path, flags, mode);
}
