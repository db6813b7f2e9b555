/* A disk that loses what was not synced: see disk.rs, which compiles and preloads this.
 *
 * After each sync, the file's content is copied to $ORACLE_DISK_DURABLE/INODE, and a directory's entries to
 * $ORACLE_DISK_DURABLE/INODE.entries: what a power cut leaves. Of the three numbers of a sync, counted from 1, at
 * most one is set:
 *   ORACLE_DISK_CUT   the power goes before this sync
 *   ORACLE_DISK_FAIL  this sync and all later ones fail
 *   ORACLE_DISK_LIE   this sync and all later ones do nothing and report success
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int done) {
    if (!done) {
        perror("disk.c");
        abort();
    }
}

static void keep_entries(int fd, FILE *out) {
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(again >= 0);
    DIR *directory = fdopendir(again);
    must(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        fprintf(out, "%lu/%s\n", (unsigned long)entry->d_ino, entry->d_name);
    }
    closedir(directory);
}

/* Reads through the descriptor of the caller: closing another one would drop SQLite's locks on the file. */
static void keep(int fd) {
    struct stat file;
    must(fstat(fd, &file) == 0);
    if (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode)) {
        return;
    }
    const char *durable = getenv("ORACLE_DISK_DURABLE");
    const char *suffix = S_ISDIR(file.st_mode) ? ".entries" : "";
    char path[4096], draft[4200];
    snprintf(path, sizeof path, "%s/%lu%s", durable, (unsigned long)file.st_ino, suffix);
    snprintf(draft, sizeof draft, "%s.draft", path);
    FILE *out = fopen(draft, "we");
    must(out != NULL);
    if (S_ISDIR(file.st_mode)) {
        keep_entries(fd, out);
    } else {
        for (off_t at = 0; at < file.st_size;) {
            must(sendfile(fileno(out), fd, &at, file.st_size - at) > 0);
        }
    }
    must(fclose(out) == 0 && rename(draft, path) == 0);
}

static unsigned long planned(const char *name) {
    const char *number = getenv(name);
    return number == NULL ? -1UL : strtoul(number, NULL, 10);
}

static int sync_as(const char *name, int fd) {
    static unsigned long syncs;
    unsigned long number = __sync_add_and_fetch(&syncs, 1);
    if (number >= planned("ORACLE_DISK_CUT")) {
        kill(getpid(), SIGKILL);
        pause();
    }
    if (number >= planned("ORACLE_DISK_FAIL")) {
        errno = EIO;
        return -1;
    }
    if (number >= planned("ORACLE_DISK_LIE")) {
        return 0;
    }
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result = sync(fd);
    if (result == 0) {
        keep(fd);
    }
    return result;
}

int fsync(int fd) { return sync_as("fsync", fd); }
int fdatasync(int fd) { return sync_as("fdatasync", fd); }
