"""The system calls: arguments as a user program passes them, the result as it receives it (0 or
more, or a negative errno).

Each runs as ``current()``.  Addresses, lengths, sizes and offsets are bytes,
unsigned 64-bit; descriptors and pids are signed.
"""

from __future__ import annotations

from kemu.abi.uapi import *
from kemu.kernel.arch.uaccess import access_ok, copy_to_user
from kemu.kernel.fs.exec import do_execve
from kemu.kernel.fs.file_table import fput
from kemu.kernel.fs.files import do_open, fget, inode_newsize_ok, install_new, s_maxbytes
from kemu.kernel.fs.pipe import anon_pipe_read, anon_pipe_write, do_pipe2, new_pipe, pipe_of
from kemu.kernel.include.flags import *
from kemu.kernel.include.linkage import asmlinkage
from kemu.kernel.include.mm_types import FMODE_READ, FMODE_WRITE, PAGE_SHIFT, PAGE_SIZE
from kemu.kernel.include.sched_types import siginfo
from kemu.kernel.include.system import current, system
from kemu.kernel.kernel.exit import do_exit, do_group_exit, kernel_wait4
from kemu.kernel.kernel.fork import kernel_clone
from kemu.kernel.kernel.signal import do_send_specific, group_send_sig_info
from kemu.kernel.mm.madvise import do_madvise
from kemu.kernel.mm.mincore import do_mincore, do_mseal, do_msync
from kemu.kernel.mm.mlock import do_mlock, do_mlockall, do_munlock, do_munlockall
from kemu.kernel.mm.mmap import do_remap_file_pages, ksys_mmap_pgoff
from kemu.kernel.mm.mprotect import do_mprotect_pkey
from kemu.kernel.mm.mremap import do_mremap
from kemu.kernel.mm.munmap import __vm_munmap
from kemu.kernel.mm.process_vm import (
    io_register_buffer,
    io_unregister_buffer,
    mem_rw,
    process_vm_rw,
    vmsplice,
)
from kemu.kernel.mm.readwrite import mapping_seek_hole_data, vfs_read, vfs_write
from kemu.kernel.mm.shmem import memfd_create
from kemu.kernel.mm.truncate import do_truncate, generic_fadvise, vfs_fallocate
from kemu.kernel.mm.writeback import vfs_fsync


@asmlinkage
def sys_mmap(addr: int, length: int, prot: int, flags: int, fd: int = -1, off: int = 0) -> int:
    """mmap(2): the address."""
    if off % PAGE_SIZE:
        #: the offset {off:#x} is not a multiple of the page size -> an offset that ends in 000
        return -EINVAL
    return ksys_mmap_pgoff(addr, length, prot, flags, fd, off >> PAGE_SHIFT)


@asmlinkage
def sys_munmap(addr: int, length: int) -> int:
    """munmap(2)."""
    return __vm_munmap(addr, length)


@asmlinkage
def sys_mprotect(addr: int, length: int, prot: int) -> int:
    """mprotect(2)."""
    return do_mprotect_pkey(addr, length, prot)


@asmlinkage
def sys_fork() -> int:
    """fork(2): the child's pid."""
    return kernel_clone(0, SIGCHLD)


@asmlinkage
def sys_vfork() -> int:
    """vfork(2): the child's pid; the caller sleeps until the child execs or exits."""
    return kernel_clone(CLONE_VFORK | CLONE_VM, SIGCHLD)


@asmlinkage
def sys_clone(
    flags: int, stack: int = 0, parent_tid: int = 0, child_tid: int = 0, tls: int = 0
) -> int:
    """clone(2): the child's pid; the low byte of ``flags`` is the child's exit signal."""
    return kernel_clone(
        flags & ~CSIGNAL & 0xFFFFFFFF,
        flags & CSIGNAL,
        stack=stack,
        parent_tid=parent_tid,
        child_tid=child_tid,
        tls=tls,
    )


@asmlinkage
def sys_exit(code: int) -> int:
    """exit(2): this thread; does not return."""
    do_exit((code & 0xFF) << 8)
    return 0


@asmlinkage
def sys_exit_group(code: int) -> int:
    """exit_group(2): the process; does not return."""
    do_group_exit((code & 0xFF) << 8)
    return 0


@asmlinkage
def sys_wait4(pid: int, stat_addr: int = 0, options: int = 0, rusage: int = 0) -> int:
    """wait4(2): the pid of a child that ended."""
    ret = kernel_wait4(pid, stat_addr, options)
    if ret == -ERESTARTSYS:
        current().restart_block = ("wait4", pid, stat_addr, options)
    return ret


@asmlinkage
def sys_kill(pid: int, sig: int) -> int:
    """kill(2) to one process."""
    if not 0 <= sig <= NSIG:
        return -EINVAL  #: no signal {sig} -> a signal from 0 to 64
    task = system.tasks.get(pid)
    if task is None or task.pid == 0:
        return -ESRCH  #: no process {pid}
    return group_send_sig_info(siginfo(sig, SI_USER, pid=current().tgid), task.group_leader)


@asmlinkage
def sys_tgkill(tgid: int, tid: int, sig: int) -> int:
    """tgkill(2): a signal for one thread."""
    task = system.tasks.get(tid)
    if not 0 <= sig <= NSIG or tgid <= 0 or tid <= 0:
        #: no signal {sig}, or a pid is not positive -> a signal from 0 to 64
        return -EINVAL
    if task is None or task.tgid != tgid:
        return -ESRCH  #: no thread {tid} in process {tgid} -> a thread that exists: see ps
    return do_send_specific(siginfo(sig, SI_TKILL, pid=current().tgid), task)


@asmlinkage
def sys_sigaction(sig: int, action: str) -> int:
    """rt_sigaction(2), reduced to the action: "default", "handle" or "ignore"."""
    if not 1 <= sig <= NSIG or sig in (SIGKILL, SIGSTOP):
        return -EINVAL  #: signal {sig} cannot be handled -> a signal other than KILL and STOP
    current().sighand.action.put(sig, None if action == "default" else action)
    return 0


@asmlinkage
def sys_getpid() -> int:
    """getpid(2)."""
    return current().tgid


@asmlinkage
def sys_getppid() -> int:
    """getppid(2)."""
    parent = current().real_parent
    return parent.tgid if parent is not None else 0


@asmlinkage
def sys_setrlimit(resource: int, soft: int, hard: int) -> int:
    """setrlimit(2)."""
    if soft > hard:
        #: the soft limit {soft} is above the hard one, {hard} -> a soft limit up to the hard one
        return -EINVAL
    if not 0 <= resource < 16:
        return -EINVAL  #: no resource {resource}
    current().signal.rlim.put(resource, (soft, hard))
    return 0


@asmlinkage
def sys_open(path: str, flags: int = 0) -> int:
    """open(2): a descriptor."""
    return do_open(path, flags)


@asmlinkage
def sys_memfd_create(name: str) -> int:
    """memfd_create(2): a descriptor of an empty file in memory."""
    file = memfd_create(name)
    return file if isinstance(file, int) else install_new(file)


@asmlinkage
def sys_close(fd: int) -> int:
    """close(2)."""
    file = fget(fd)
    files = current().files
    if file is None or files is None:
        return -EBADF  #: descriptor {fd} is not open
    files.fd.put(fd, None)
    fput(file)
    return 0


@asmlinkage
def sys_execve(path: str, argv: list[bytes], envp: list[bytes] | None = None) -> int:
    """execve(2)."""
    return do_execve(path, argv, envp)


@asmlinkage
def sys_ftruncate(fd: int, size: int) -> int:
    """ftruncate(2)."""
    if size < 0:
        return -EINVAL  #: the size {size} is negative -> a size from 0 up
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if not file.f_mode & FMODE_WRITE:
        return -EINVAL  #: descriptor {fd} is not open for writing -> open TASK PATH rdwr
    if pipe_of(file) is not None:
        return -EINVAL  #: {fd} is a pipe: it has no size -> a file
    return inode_newsize_ok(file.f_inode, size) or do_truncate(file.f_inode, size)


@asmlinkage
def sys_fallocate(fd: int, mode: int, offset: int, length: int) -> int:
    """fallocate(2)."""
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    return vfs_fallocate(file, mode, offset, length)


@asmlinkage
def sys_fsync(fd: int) -> int:
    """fsync(2)."""
    file = fget(fd)
    return -EBADF if file is None else vfs_fsync(file.f_inode)  #: descriptor {fd} is not open


@asmlinkage
def sys_fadvise64(fd: int, offset: int, length: int, advice: int) -> int:
    """posix_fadvise(2)."""
    file = fget(fd)
    #: descriptor {fd} is not open
    return -EBADF if file is None else generic_fadvise(file.f_inode, offset, length, advice)


@asmlinkage
def sys_mremap(addr: int, old_len: int, new_len: int, flags: int, new_addr: int = 0) -> int:
    """mremap(2): the address."""
    return do_mremap(addr, old_len, new_len, flags, new_addr)


@asmlinkage
def sys_madvise(start: int, length: int, advice: int) -> int:
    """madvise(2)."""
    return do_madvise(start, length, advice)


@asmlinkage
def sys_mlock(start: int, length: int) -> int:
    """mlock(2)."""
    return do_mlock(start, length, VM_LOCKED)


@asmlinkage
def sys_mlock2(start: int, length: int, flags: int) -> int:
    """mlock2(2)."""
    if flags & ~MLOCK_ONFAULT:
        return -EINVAL  #: mlock2 has no flag other than onfault -> onfault, or none
    return do_mlock(start, length, VM_LOCKED | (VM_LOCKONFAULT if flags else 0))


@asmlinkage
def sys_munlock(start: int, length: int) -> int:
    """munlock(2)."""
    return do_munlock(start, length)


@asmlinkage
def sys_mlockall(flags: int) -> int:
    """mlockall(2)."""
    return do_mlockall(flags)


@asmlinkage
def sys_munlockall() -> int:
    """munlockall(2)."""
    return do_munlockall()


@asmlinkage
def sys_mincore(start: int, length: int, vec: int) -> int:
    """mincore(2): one byte per page is stored at ``vec``."""
    error, resident = do_mincore(start, length)
    if error:
        return error
    #: {copy_to_user} -> an address for the result that is mapped rw
    return -EFAULT if copy_to_user(vec, resident) else 0


@asmlinkage
def sys_msync(start: int, length: int, flags: int) -> int:
    """msync(2)."""
    return do_msync(start, length, flags)


@asmlinkage
def sys_mseal(start: int, length: int, flags: int = 0) -> int:
    """mseal(2)."""
    return do_mseal(start, length, flags)


@asmlinkage
def sys_remap_file_pages(start: int, size: int, prot: int, pgoff: int, flags: int) -> int:
    """remap_file_pages(2)."""
    return do_remap_file_pages(start, size, prot, pgoff, flags)


@asmlinkage
def sys_pkey_mprotect(addr: int, length: int, prot: int, pkey: int) -> int:
    """pkey_mprotect(2): there are no protection keys, so only -1 is valid."""
    return do_mprotect_pkey(addr, length, prot, pkey)


@asmlinkage
def sys_process_vm_readv(pid: int, local: int, remote: int, size: int, flags: int = 0) -> int:
    """process_vm_readv(2) of one range."""
    return process_vm_rw(pid, local, remote, size, flags, write=False)


@asmlinkage
def sys_process_vm_writev(pid: int, local: int, remote: int, size: int, flags: int = 0) -> int:
    """process_vm_writev(2) of one range."""
    return process_vm_rw(pid, local, remote, size, flags, write=True)


@asmlinkage
def sys_memread(pid: int, local: int, addr: int, size: int) -> int:
    """pread(2) on /proc/PID/mem."""
    return mem_rw(pid, local, addr, size, write=False)


@asmlinkage
def sys_memwrite(pid: int, local: int, addr: int, size: int) -> int:
    """pwrite(2) on /proc/PID/mem."""
    return mem_rw(pid, local, addr, size, write=True)


@asmlinkage
def sys_pin(addr: int, size: int) -> int:
    """io_uring_register(2) of a buffer: a long-term pin."""
    return io_register_buffer(addr, size)


@asmlinkage
def sys_unpin(addr: int, size: int) -> int:
    """io_uring_register(2): unregister the buffer."""
    return io_unregister_buffer(addr, size)


@asmlinkage
def sys_pipe() -> int:
    """pipe(2), reduced to one descriptor for both ends."""
    file = new_pipe()
    return file if isinstance(file, int) else install_new(file)


@asmlinkage
def sys_vmsplice(fd: int, addr: int, size: int) -> int:
    """vmsplice(2) of one range into a pipe."""
    return vmsplice(fd, addr, size)


@asmlinkage
def sys_pipe2(fildes: int, flags: int = 0) -> int:
    """pipe2(2): a descriptor for each end, two ints at ``fildes``."""
    return do_pipe2(fildes, flags)


@asmlinkage
def sys_read(fd: int, addr: int, count: int) -> int:
    """read(2): from a pipe, or at the position of the open file."""
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if not file.f_mode & FMODE_READ:
        return -EBADF  #: descriptor {fd} is not open for reading -> open TASK PATH rdonly, or rdwr
    if not access_ok(addr, count):
        return -EFAULT  #: {addr:#x} is not an address of user memory
    if pipe_of(file) is not None:
        ret = anon_pipe_read(file, addr, count)
        if ret == -ERESTARTSYS:
            current().restart_block = ("read", fd, addr, count)
        return ret
    ret = vfs_read(file, addr, count, file.f_pos)
    if ret > 0:
        file.f_pos += ret
    return ret


@asmlinkage
def sys_write(fd: int, addr: int, count: int) -> int:
    """write(2): to a pipe, or at the position of the open file."""
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if not file.f_mode & FMODE_WRITE:
        return -EBADF  #: descriptor {fd} is not open for writing -> open TASK PATH rdwr
    if not access_ok(addr, count):
        return -EFAULT  #: {addr:#x} is not an address of user memory
    if pipe_of(file) is not None:
        return anon_pipe_write(file, addr, count)
    ret = vfs_write(file, addr, count, file.f_pos)
    if ret > 0:
        file.f_pos += ret
    return ret


@asmlinkage
def sys_lseek(fd: int, offset: int, whence: int = SEEK_SET) -> int:
    """lseek(2): the new position of the open file, for all that share it; -EBADF, -ESPIPE,
    -EINVAL, -ENXIO."""
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if not SEEK_SET <= whence <= SEEK_HOLE:
        return -EINVAL  #: whence {whence} is not set, cur, end, data or hole
    if pipe_of(file) is not None:
        return -ESPIPE  #: {fd} is a pipe: it has no position -> a file
    if whence in (SEEK_DATA, SEEK_HOLE):
        pos = mapping_seek_hole_data(file.f_inode, offset, whence)
        if pos < 0:
            return pos
    else:
        pos = offset + (0, file.f_pos, file.f_inode.i_size)[whence]
    if not 0 <= pos <= s_maxbytes(file.f_inode):
        return -EINVAL  #: position {pos} is negative or too large -> a position from 0 up
    file.f_pos = pos
    return pos


@asmlinkage
def sys_pread(fd: int, addr: int, count: int, pos: int) -> int:
    """pread(2): the number of bytes stored at ``addr``; the store is a kernel-mode access that may
    fault."""
    if pos < 0:
        return -EINVAL  #: the offset {pos} is negative -> an offset from 0 up
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if pipe_of(file) is not None:
        return -ESPIPE  #: {fd} is a pipe: it has no position -> read, not pread
    if not file.f_mode & FMODE_READ:
        return -EBADF  #: descriptor {fd} is not open for reading -> open TASK PATH rdonly, or rdwr
    return vfs_read(file, addr, count, pos)


@asmlinkage
def sys_pwrite(fd: int, addr: int, count: int, pos: int) -> int:
    """pwrite(2): the number of bytes taken from ``addr``."""
    if pos < 0:
        return -EINVAL  #: the offset {pos} is negative -> an offset from 0 up
    file = fget(fd)
    if file is None:
        return -EBADF  #: descriptor {fd} is not open
    if pipe_of(file) is not None:
        return -ESPIPE  #: {fd} is a pipe: it has no position -> write, not pwrite
    if not file.f_mode & FMODE_WRITE:
        return -EBADF  #: descriptor {fd} is not open for writing -> open TASK PATH rdwr
    return vfs_write(file, addr, count, pos)
