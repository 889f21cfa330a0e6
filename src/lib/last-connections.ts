import { readdirSync } from "node:fs";

import { dlopen, ptr } from "bun:ffi";

// Constants of Linux on x64 and arm64.
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;
const INT_BYTES = 4;

/**
 * A packet filter (BPF) of four instructions, each with its code and jumps in the first number and its operand in the
 * second: it loads the flags of the TCP header, skips the next instruction if SYN is not set, drops the packet, and accepts it.
 */
const DROP_SYN = Uint32Array.of(0x30, 13, 0x01_00_00_45, 2, 0x06, 0, 0x06, 0xffff_ffff);

/**
 * Drops the packets that open a connection to a listener of this process; returns whether that worked. When a listener
 * closes, Linux resets the connections that it has not accepted, although their clients may have sent a request. A
 * process that first drops new connections can accept all others before it closes the listener. A client whose packet was
 * dropped repeats it after a second and is refused then, so that a proxy takes another process.
 */
export function dropNewConnections(): boolean {
  if (process.platform !== "linux") return false;
  try {
    const { symbols: libc } = dlopen("libc.so.6", {
      getsockopt: { args: ["int", "int", "int", "ptr", "ptr"], returns: "int" },
      setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" },
    });
    const isListener = (fd: number) => {
      const value = new Int32Array(1);
      const length = Uint32Array.of(INT_BYTES);
      libc.getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, ptr(value), ptr(length));
      return value[0] === 1;
    };
    const filter = BigUint64Array.of(BigInt(DROP_SYN.length / 2), BigInt(ptr(DROP_SYN)));
    const attach = (fd: number) =>
      libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, ptr(filter), filter.byteLength) === 0;
    return readdirSync("/proc/self/fd").map(Number).filter(isListener).every(attach);
  } catch {
    // There is no glibc, or it may not be called.
    return false;
  }
}
