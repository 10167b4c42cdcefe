/* Kills a process, or fails one of its calls, at the N-th call that changes files below a folder.

   It is preloaded into a process that forks commands; `fault_arm` arms it in the fork. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[PATH_MAX];
static long at, calls;
static int action; /* 0 counts; SIGKILL is -1; else the number of the error */

void fault_arm(const char *folder, long n, int what) {
  snprintf(root, sizeof root, "%s", folder);
  at = n, calls = 0, action = what;
}

long fault_calls(void) { return calls; }

static int below(const char *path) {
  size_t length = strlen(root);
  return length && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int is_ours(int folder, const char *path) {
  char link[64], start[PATH_MAX], whole[2 * PATH_MAX];
  if (path && path[0] == '/') return below(path);
  if (folder == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
  else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
  ssize_t size = readlink(link, start, sizeof start - 1);
  if (size < 0) return 0;
  start[size] = 0;
  snprintf(whole, sizeof whole, "%s/%s", start, path ? path : "");
  return below(path ? whole : start);
}

/* Count a call; return 0, or -1 with errno if it is to fail. */
static int fault(int folder, const char *path) {
  if (!root[0] || !is_ours(folder, path)) return 0;
  if (++calls != at || !action) return 0;
  if (action < 0) kill(getpid(), SIGKILL);
  errno = action;
  return -1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define WRAP(result, name, parameters, folder, path, arguments) \
  result name parameters { REAL(name); return fault(folder, path) ? -1 : real arguments; }

WRAP(ssize_t, write, (int fd, const void *data, size_t size), fd, 0, (fd, data, size))
WRAP(int, fsync, (int fd), fd, 0, (fd))
WRAP(int, rename, (const char *from, const char *to), AT_FDCWD, to, (from, to))
WRAP(int, renameat, (int from_fd, const char *from, int to_fd, const char *to), to_fd, to, (from_fd, from, to_fd, to))
WRAP(int, link, (const char *from, const char *to), AT_FDCWD, to, (from, to))
WRAP(int, unlink, (const char *path), AT_FDCWD, path, (path))
WRAP(int, unlinkat, (int fd, const char *path, int flags), fd, path, (fd, path, flags))
WRAP(int, rmdir, (const char *path), AT_FDCWD, path, (path))
WRAP(int, mkdir, (const char *path, mode_t mode), AT_FDCWD, path, (path, mode))
WRAP(int, flock, (int fd, int operation), fd, 0, (fd, operation))

#define OPEN(name, parameters, folder, arguments) \
  int name parameters { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = va_arg(rest, mode_t); \
    va_end(rest); \
    if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) && fault(folder, path)) return -1; \
    return real arguments; \
  }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN(openat, (int fd, const char *path, int flags, ...), fd, (fd, path, flags, mode))
OPEN(openat64, (int fd, const char *path, int flags, ...), fd, (fd, path, flags, mode))
