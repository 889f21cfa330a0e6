// A replacement of a mail server: it writes every mail to an .eml file and sends nothing.
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { SMTPServer } from "smtp-server";

export interface SmtpSink {
  url: string;
  mailDir: string;
  stop(): Promise<void>;
}

const LARGEST_MAIL = 10 * 1024 * 1024;
/** Maximum time in ms that stop() waits for clients that are sending a mail. */
const CLOSE_MS = 500;

export async function startSmtpSink(mailDir: string, port = 0): Promise<SmtpSink> {
  mkdirSync(mailDir, { recursive: true, mode: 0o700 });
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS", "AUTH"],
    disableReverseLookup: true,
    size: LARGEST_MAIL,
    closeTimeout: CLOSE_MS,
    onData(stream, session, answer) {
      const { mailFrom, rcptTo } = session.envelope;
      const recipients = rcptTo.map(({ address }) => address);
      void keep(mailDir, stream, mailFrom === false ? "" : mailFrom.address, recipients).then(
        answer,
      );
    },
  });
  // The server must survive a client that disconnects while it sends a mail.
  server.on("error", () => undefined);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.server.address();
  if (address === null || typeof address === "string") throw new Error("the SMTP sink has no port");
  return {
    url: `smtp://127.0.0.1:${address.port}`,
    mailDir,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/**
 * Writes a mail to a file. Returns undefined when the complete file is on disk, because only then the mail may be
 * accepted.
 */
async function keep(
  mailDir: string,
  stream: Readable,
  from: string,
  to: string[],
): Promise<Error | undefined> {
  try {
    await write(mailDir, stream, from, to);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function write(mailDir: string, stream: Readable, from: string, to: string[]): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  // The envelope is not part of the mail, but contains the actual recipients, so it is stored in headers.
  const envelope = `X-Envelope-From: <${from}>\r\nX-Envelope-To: ${to.map((one) => `<${one}>`).join(", ")}\r\n`;
  const name = `${new Date().toISOString().replaceAll(":", "-")}-${randomBytes(4).toString("hex")}`;
  const temporary = join(mailDir, `.${name}.tmp`);
  await writeFile(temporary, Buffer.concat([Buffer.from(envelope), ...chunks]), { mode: 0o600 });
  await rename(temporary, join(mailDir, `${name}.eml`));
}
