import type { Readable } from "node:stream";

import { SMTPServer } from "smtp-server";

/**
 * The behaviour of a recipient's server: it accepts, replies with a code at RCPT TO or after DATA, or never replies.
 */
type Treatment =
  | { readonly at: "rcpt" | "data"; readonly code: number; readonly text?: string }
  | "accept"
  | "hang";

export interface ReceivedMail {
  readonly to: string[];
  readonly raw: string;
  readonly at: number;
}

/** A real SMTP server on loopback. A function of the test chooses its behaviour for each recipient. */
export class MailServer {
  readonly received: ReceivedMail[] = [];
  /** All recipients of RCPT TO commands, also rejected ones. */
  readonly asked: string[] = [];
  /** The highest number of simultaneous connections. */
  peak = 0;
  readonly #treat: (to: string, count: number) => Treatment;
  #server: SMTPServer | undefined;
  #port = 0;
  #open = 0;

  private constructor(treat: (to: string, count: number) => Treatment) {
    this.#treat = treat;
  }

  /** Starts a server. `treat` gets the recipient and the number of its earlier RCPT TO commands. */
  static async start(
    treat: (to: string, count: number) => Treatment = () => "accept",
  ): Promise<MailServer> {
    const server = new MailServer(treat);
    await server.up();
    return server;
  }

  get url(): string {
    return `smtp://127.0.0.1:${this.#port}`;
  }

  /** The Message-IDs in the order of arrival. */
  get messageIds(): string[] {
    return this.received.map((mail) => headerOf(mail, "Message-ID"));
  }

  /** Listens. After a `stop` it uses the same port again, as a restarted server would. */
  async up(): Promise<void> {
    const server = new SMTPServer({
      authOptional: true,
      disabledCommands: ["STARTTLS", "AUTH"],
      disableReverseLookup: true,
      closeTimeout: 50,
      onConnect: (_session, answer) => {
        this.#open += 1;
        this.peak = Math.max(this.peak, this.#open);
        answer();
      },
      onClose: () => {
        this.#open -= 1;
      },
      onRcptTo: ({ address }, _session, answer) => {
        const count = this.asked.filter((one) => one === address).length;
        this.asked.push(address);
        const treatment = this.#treat(address, count);
        if (treatment !== "hang") answer(refusal(treatment, "rcpt"));
      },
      onData: (stream, session, answer) => {
        const to = session.envelope.rcptTo.map(({ address }) => address);
        void readAll(stream).then((raw) => {
          const [first = ""] = to;
          const before = this.asked.filter((one) => one === first).length - 1;
          const error = refusal(this.#treat(first, before), "data");
          if (error === undefined) this.received.push({ to, raw, at: Date.now() });
          answer(error);
          // Reading fails if a client disconnects in the middle of a mail.
        }, answer);
      },
    });
    if (this.#port !== 0) await listening(server, this.#port);
    while (this.#port === 0) {
      const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
      if (await listening(server, port).catch(() => false)) this.#port = port;
    }
    server.on("error", () => undefined);
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

/** Ports below the ephemeral range, so that no other process gets the port of a stopped server. */
const FIRST_PORT = 20_000;
const PORTS = 10_000;

function listening(server: SMTPServer, port: number): Promise<true> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve(true);
    });
  });
}

function refusal(treatment: Treatment, at: "rcpt" | "data"): Error | undefined {
  if (typeof treatment === "string" || treatment.at !== at) return undefined;
  return Object.assign(new Error(treatment.text ?? "No."), { responseCode: treatment.code });
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

/** Reads a header of a mail and joins its folded lines. */
export function headerOf({ raw }: ReceivedMail, name: string): string {
  const head = (raw.split("\r\n\r\n")[0] ?? "").replaceAll(/\r\n[ \t]+/g, " ");
  const line = head
    .split("\r\n")
    .find((one) => one.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return line?.slice(name.length + 1).trim() ?? "";
}
