/* The same steps as tests/bench/steps.py, by the real kernel: map, touch, fork, copy half, exit.
 * One line of JSON with microseconds of CPU time (exit: of the clock, for it happens in the child).
 * 4 KiB pages: huge pages are switched off for the mapping. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

/* One store of 8 bytes a page, pages [first, last); microseconds a page. */
static double touch(char *area, long first, long last)
{
	double start = now(CLOCK_THREAD_CPUTIME_ID);

	for (long i = first; i < last; i++)
		*(volatile long *)(area + i * PAGE) = i;
	return (now(CLOCK_THREAD_CPUTIME_ID) - start) / (last - first);
}

int main(int argc, char **argv)
{
	long pages = argc > 1 ? atol(argv[1]) : 16384;
	char *area = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double fault, fork_time, cow, start;
	int pipe_fd[2];

	if (area == MAP_FAILED || pipe(pipe_fd))
		return 1;
	madvise(area, pages * PAGE, MADV_NOHUGEPAGE);
	area[0] = 1;
	fault = touch(area, 1, pages);

	start = now(CLOCK_THREAD_CPUTIME_ID);
	pid_t child = fork();
	fork_time = (now(CLOCK_THREAD_CPUTIME_ID) - start) / pages;
	if (child < 0)
		return 1;
	if (child == 0) {
		area[0] = 2;
		cow = touch(area, 1, pages / 2);
		if (write(pipe_fd[1], &cow, sizeof cow) != sizeof cow)
			_exit(1);
		_exit(0);
	}
	if (read(pipe_fd[0], &cow, sizeof cow) != sizeof cow)
		return 1;
	start = now(CLOCK_MONOTONIC);
	waitpid(child, NULL, 0);
	printf("{\"fault\": %.4f, \"cow\": %.4f, \"fork\": %.5f, \"exit\": %.5f}\n", fault, cow, fork_time,
	       (now(CLOCK_MONOTONIC) - start) / pages);
	return 0;
}
