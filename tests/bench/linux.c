/* The same steps as tests/bench/steps.py, by the real kernel: map, touch, fork, copy half, exit,
 * touch, MADV_DONTNEED, touch, munmap.
 * One line of JSON with microseconds of CPU time (exit: what the child has used after its last call returned).
 * 4 KiB pages: huge pages are switched off for the mapping. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
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
	double fault, fork_time, exit_time, dontneed, unmap, start;
	struct { double cow, end; } child_says;
	struct rusage usage;
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
		child_says.cow = touch(area, 1, pages / 2);
		child_says.end = now(CLOCK_PROCESS_CPUTIME_ID);
		if (write(pipe_fd[1], &child_says, sizeof child_says) != sizeof child_says)
			_exit(1);
		_exit(0);
	}
	if (read(pipe_fd[0], &child_says, sizeof child_says) != sizeof child_says)
		return 1;
	if (wait4(child, NULL, 0, &usage) != child)
		return 1;
	exit_time = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 + usage.ru_utime.tv_usec
		    + usage.ru_stime.tv_usec - child_says.end;

	touch(area, 0, pages);
	start = now(CLOCK_THREAD_CPUTIME_ID);
	madvise(area, pages * PAGE, MADV_DONTNEED);
	dontneed = now(CLOCK_THREAD_CPUTIME_ID) - start;
	touch(area, 0, pages);
	start = now(CLOCK_THREAD_CPUTIME_ID);
	munmap(area, pages * PAGE);
	unmap = now(CLOCK_THREAD_CPUTIME_ID) - start;
	printf("{\"fault\": %.4f, \"cow\": %.4f, \"fork\": %.5f, \"exit\": %.5f, "
	       "\"dontneed\": %.5f, \"munmap\": %.5f}\n",
	       fault, child_says.cow, fork_time, exit_time / pages, dontneed / pages, unmap / pages);
	return 0;
}
