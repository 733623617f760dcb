"""The system calls: arguments as a user program gives them, result as it gets it (0 or more, or a negative errno).

Each runs as ``current()``.  Addresses and lengths are unsigned 64-bit, descriptors and pids signed.
"""

from __future__ import annotations

from collections.abc import Callable

from kemu.kernel.exec import do_execve
from kemu.kernel.exit import do_exit, do_group_exit, kernel_wait4
from kemu.kernel.files import do_open, fd_install, fget
from kemu.kernel.fork import kernel_clone
from kemu.kernel.mm_types import FMODE_READ, FMODE_WRITE, PAGE_SHIFT, PAGE_SIZE
from kemu.kernel.mman import CLONE_VFORK, CLONE_VM, CSIGNAL, EBADF, EINVAL, ERESTARTSYS, ESRCH
from kemu.kernel.mmap import ksys_mmap_pgoff
from kemu.kernel.mprotect import do_mprotect_pkey
from kemu.kernel.munmap import __vm_munmap
from kemu.kernel.readwrite import generic_file_read, generic_file_write
from kemu.kernel.sched_types import siginfo
from kemu.kernel.shmem import memfd_create
from kemu.kernel.signal import NSIG, SI_USER, SIGCHLD, SIGKILL, SIGSTOP, group_send_sig_info
from kemu.kernel.system import current, system
from kemu.kernel.vma import fput


def sys_mmap(addr: int, length: int, prot: int, flags: int, fd: int = -1, off: int = 0) -> int:
    """mmap(2): the address."""
    if off % PAGE_SIZE:
        return -EINVAL
    return ksys_mmap_pgoff(addr, length, prot, flags, fd, off >> PAGE_SHIFT)


def sys_munmap(addr: int, length: int) -> int:
    """munmap(2)."""
    return __vm_munmap(addr, length)


def sys_mprotect(addr: int, length: int, prot: int) -> int:
    """mprotect(2)."""
    return do_mprotect_pkey(addr, length, prot)


def sys_fork() -> int:
    """fork(2): the child's pid."""
    return kernel_clone(0, SIGCHLD)


def sys_vfork() -> int:
    """vfork(2): the child's pid; the caller sleeps until the child execs or exits."""
    return kernel_clone(CLONE_VFORK | CLONE_VM, SIGCHLD)


def sys_clone(flags: int, stack: int = 0, parent_tid: int = 0, child_tid: int = 0, tls: int = 0) -> int:
    """clone(2): the child's pid; the low byte of ``flags`` is the signal that its end sends."""
    return kernel_clone(
        flags & ~CSIGNAL & 0xFFFFFFFF, flags & CSIGNAL, stack=stack, parent_tid=parent_tid, child_tid=child_tid
    )


def sys_exit(code: int) -> int:
    """exit(2): this thread; does not return."""
    do_exit((code & 0xFF) << 8)
    return 0


def sys_exit_group(code: int) -> int:
    """exit_group(2): the process; does not return."""
    do_group_exit((code & 0xFF) << 8)
    return 0


def sys_wait4(pid: int, stat_addr: int = 0, options: int = 0, rusage: int = 0) -> int:
    """wait4(2): the pid of a child that ended."""
    ret = kernel_wait4(pid, stat_addr, options)
    if ret == -ERESTARTSYS:
        current().restart_block = ("wait4", pid, stat_addr, options)
    return ret


def sys_kill(pid: int, sig: int) -> int:
    """kill(2) to one process."""
    if not 0 <= sig <= NSIG:
        return -EINVAL
    task = system.tasks.get(pid)
    if task is None or task.pid == 0:
        return -ESRCH
    return group_send_sig_info(siginfo(sig, SI_USER, pid=current().tgid), task.group_leader)


def sys_sigaction(sig: int, action: str) -> int:
    """rt_sigaction(2), reduced to what is done: "default", "handle" or "ignore"."""
    if not 1 <= sig <= NSIG or sig in (SIGKILL, SIGSTOP):
        return -EINVAL
    current().sighand.action.put(sig, None if action == "default" else action)
    return 0


def sys_getpid() -> int:
    """getpid(2)."""
    return current().tgid


def sys_getppid() -> int:
    """getppid(2)."""
    parent = current().real_parent
    return parent.tgid if parent is not None else 0


def sys_setrlimit(resource: int, soft: int, hard: int) -> int:
    """setrlimit(2)."""
    if soft > hard or not 0 <= resource < 16:
        return -EINVAL
    current().signal.rlim.put(resource, (soft, hard))
    return 0


def sys_open(path: str, flags: int = 0) -> int:
    """open(2): a descriptor."""
    return do_open(path, flags)


def sys_memfd_create(name: str) -> int:
    """memfd_create(2): a descriptor of an empty file of memory."""
    return fd_install(memfd_create(name))


def sys_close(fd: int) -> int:
    """close(2)."""
    file = fget(fd)
    files = current().files
    if file is None or files is None:
        return -EBADF
    files.fd.put(fd, None)
    fput(file)
    return 0


def sys_execve(path: str, argv: list[bytes], envp: list[bytes] | None = None) -> int:
    """execve(2)."""
    return do_execve(path, argv, envp)


def sys_ftruncate(fd: int, size: int) -> int:
    """ftruncate(2), growing only: shrinking needs the truncation of mappings."""
    file = fget(fd)
    if file is None:
        return -EBADF
    if not file.f_mode & FMODE_WRITE or size < file.f_inode.i_size:
        return -EINVAL
    file.f_inode.i_size = size
    return 0


def sys_pread(fd: int, addr: int, count: int, pos: int) -> int:
    """pread(2): bytes stored at ``addr``; the store is a kernel-mode access that may fault."""
    file = fget(fd)
    if file is None or not file.f_mode & FMODE_READ:
        return -EBADF
    return generic_file_read(file, addr, count, pos)


def sys_pwrite(fd: int, addr: int, count: int, pos: int) -> int:
    """pwrite(2): bytes taken from ``addr``."""
    file = fget(fd)
    if file is None or not file.f_mode & FMODE_WRITE:
        return -EBADF
    return generic_file_write(file, addr, count, pos)


SYSCALLS: dict[str, Callable[..., int]] = {
    name[4:]: function for name, function in list(globals().items()) if name.startswith("sys_")
}
"""Every system call by name."""
