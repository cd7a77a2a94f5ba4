// SPDX-License-Identifier: Apache-2.0
//
// Helpers that run the pieces of a step beside the thread that asks. They watch for the next group for a while, then
// sleep; one group runs at a time, and whoever comes meanwhile runs its pieces alone. No piece waits for a helper: where
// none can be made, the asking thread runs them all. A forked process makes its own.
#include "engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST_HELPERS 15
#define STACK_BYTES (256 << 10)
#define LOOKS 64  // at what changes, between two readings of the clock

#if defined(__aarch64__) || defined(__arm__)
#define PAUSE() __asm__ volatile("yield")
#elif defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() (void)0
#endif

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;  // held by the thread whose group runs
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of the variables below
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static int wanted, helpers, active;
static int64_t awake;     // nanoseconds that a thread watches before it sleeps
static uint32_t changes;  // grows with what a thread may watch for: a group that is entered, and its end
static uint64_t groups;
static int entered;  // whether a group may be entered
static void (*job)(void *, int64_t);
static void *context;
static int64_t count, next;

static void run_pieces(void) {
  for (;;) {
    int64_t place = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    if (place >= count) return;
    job(context, place);
  }
}

static int64_t nanoseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

// Leaves the lock until something changes, but for a while only. Returns whether it did; other threads run meanwhile.
static int watched(void) {
  const uint32_t before = changes;
  const int64_t patience = awake;
  int changed = 0;
  pthread_mutex_unlock(&lock);
  for (int64_t end = nanoseconds() + patience; !changed && nanoseconds() < end; sched_yield())
    for (int look = 0; look < LOOKS && !changed; ++look) {
      changed = __atomic_load_n(&changes, __ATOMIC_ACQUIRE) != before;
      PAUSE();
    }
  pthread_mutex_lock(&lock);
  return changed || changes != before;
}

static void change(void) { __atomic_store_n(&changes, changes + 1, __ATOMIC_RELEASE); }

static void *help(void *unused) {
  (void)unused;
  uint64_t seen = 0;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!entered || groups == seen)
      if (!watched()) pthread_cond_wait(&wake, &lock);
    seen = groups;
    ++active;
    pthread_mutex_unlock(&lock);
    run_pieces();
    pthread_mutex_lock(&lock);
    if (--active == 0) {
      change();
      pthread_cond_signal(&idle);
    }
  }
  return NULL;
}

// Forgets the helpers that a forked process does not have, with their conditions: glibc's conditions count waiters.
static void forget_helpers(void) {
  turn = lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  wake = idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  helpers = active = entered = 0;
}

// Makes the helpers that are wanted and not there. They take no signals, which are Python's.
static void make_helpers(void) {
  static int registered;
  pthread_attr_t attributes;
  sigset_t all, before;
  if (helpers >= wanted) return;
  if (!registered && pthread_atfork(NULL, NULL, forget_helpers)) return;
  registered = 1;
  if (pthread_attr_init(&attributes)) return;
  sigfillset(&all);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (helpers < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, help, NULL)) {
      wanted = helpers;
      break;
    }
    ++helpers;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

// Sets the threads that run the pieces of a step, the asking one included, and the microseconds that they watch for the
// next group; helpers that are there stay.
EXPORT void hilt_threads(int32_t threads, int32_t microseconds) {
  pthread_mutex_lock(&lock);
  awake = in_range(microseconds, 0, 1000000) ? (int64_t)microseconds * 1000 : 0;
  wanted = threads < 1 ? 0 : threads - 1 > MOST_HELPERS ? MOST_HELPERS : threads - 1;
  pthread_mutex_unlock(&lock);
}

void rouse_helpers(void) {
  pthread_mutex_lock(&lock);
  if (wanted > 0 && helpers > 0) {
    change();
    pthread_cond_broadcast(&wake);
  }
  pthread_mutex_unlock(&lock);
}

void run_together(void (*run)(void *, int64_t), void *with, int64_t pieces) {
  if (pthread_mutex_trylock(&turn)) {
    for (int64_t place = 0; place < pieces; ++place) run(with, place);
    return;
  }
  pthread_mutex_lock(&lock);
  make_helpers();
  job = run, context = with, count = pieces;
  __atomic_store_n(&next, 0, __ATOMIC_RELAXED);
  ++groups;
  entered = 1;
  change();
  pthread_cond_broadcast(&wake);
  pthread_mutex_unlock(&lock);
  run_pieces();
  pthread_mutex_lock(&lock);
  entered = 0;
  while (active)
    if (!watched()) pthread_cond_wait(&idle, &lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&turn);
}
