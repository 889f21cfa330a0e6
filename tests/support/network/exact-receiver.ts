import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** A partner's endpoint that keeps the exact bytes of each request, with the spelling and order of its headers. */
export class ExactReceiver {
  readonly requests: string[] = [];
  /** Chooses the status from the request and the number of earlier requests with the same event. */
  answer: (request: string, before: number) => number = () => 200;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<ExactReceiver> {
    const server = createServer();
    const receiver = new ExactReceiver(server);
    server.on("connection", (socket) => receiver.#take(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(socket: Socket): void {
    this.#sockets.add(socket);
    let came = Buffer.alloc(0);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (chunk: Buffer) => {
      came = Buffer.concat([came, chunk]);
      const headEnd = came.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(came.toString("latin1"))?.[1]);
      const end = headEnd + 4 + length;
      if (came.length < end) return;
      const request = came.subarray(0, end).toString();
      came = came.subarray(end);
      const before = this.requests.filter((one) => eventIdOf(one) === eventIdOf(request)).length;
      this.requests.push(request);
      const status = this.answer(request, before);
      socket.write(`HTTP/1.1 ${status} Answer\r\nContent-Length: 0\r\n\r\n`);
    });
  }
}

function eventIdOf(request: string): string | undefined {
  return /X-SVC-Delivery: (\S+)/.exec(request)?.[1];
}
