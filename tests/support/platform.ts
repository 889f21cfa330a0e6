// A small platform with users, webhooks and tables of its own, into which ReviewRelay moves.
import { createHmac } from "node:crypto";

import postgres from "postgres";

import { ROOT } from "../../scripts/install/install.ts";

/** The tables of the platform. Several have the names of tables of ReviewRelay. */
const TABLES = `
  create table partners (id int primary key, name text, ulid text, webhook_url text, webhook_secret text,
    webhooks_moved_at timestamptz);
  create table accounts (id int primary key, name text, partner_id int references partners);
  create table stores (id int primary key, name text, account_id int references accounts);
  create table users (id int primary key, email text, name text, role text, partner_id int, account_id int,
    password_hash text);
  create table reviews (id int primary key, store_id int references stores, site_review_id text, rate int, content text,
    reviewed_at timestamptz);
  create table notes (id int primary key, review_id int references reviews, user_id int references users, body text)`;

export const PLATFORM = {
  partnerId: 301,
  userId: 501,
  email: "pat@northwind.example",
  password: "an old password",
  /** The secret that the partner has for the platform's webhooks. */
  secret: "whsec_5eb3f0c2a1",
  subscriptionId: "01JABCDEFGHJKMNPQRSTVWXYZ0",
} as const;

const ROWS = `
  insert into partners values (${PLATFORM.partnerId}, 'Northwind Agency', '${PLATFORM.subscriptionId}', $URL,
    '${PLATFORM.secret}', null);
  insert into accounts values (401, 'Alder Plumbing', ${PLATFORM.partnerId});
  insert into stores values (701, 'Alder Plumbing East', 401);
  insert into users values
    (${PLATFORM.userId}, '${PLATFORM.email}', 'Pat', 'partner_owner', ${PLATFORM.partnerId}, null, $HASH),
    (502, 'ada@alder.example', 'Ada', 'account_owner', null, 401, $HASH);
  insert into reviews values (901, 701, 'site-901', 4, 'On time.', now() - interval '1 day')`;

interface Settings {
  /** The platform's database, as its own user. */
  readonly databaseUrl: string;
  readonly port: number;
  /** The root that the platform and ReviewRelay share. */
  readonly root: string;
  /** The schema of ReviewRelay in the database. */
  readonly schema: string;
  readonly webhookUrl: string;
}

/** The user whom a token is of by the key set, and by introspection; `-` for none. */
export type Verdict = Readonly<{ keys: string; asked: string }>;

export class Platform {
  readonly #settings: Settings;
  readonly #sql: postgres.Sql;
  readonly #server: Bun.Server<undefined>;
  #notes = 100;
  /** The platform's service at ReviewRelay, and its token. */
  service = { id: 0, token: "" };

  private constructor(settings: Settings) {
    this.#settings = settings;
    this.#sql = postgres(settings.databaseUrl, { max: 4, onnotice: () => {} });
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: settings.port,
      fetch: (request) => this.#answer(request),
    });
  }

  static async start(settings: Settings): Promise<Platform> {
    const platform = new Platform(settings);
    const hash = await Bun.password.hash(PLATFORM.password, { algorithm: "bcrypt", cost: 4 });
    const rows = ROWS.replaceAll("$HASH", `'${hash}'`).replace("$URL", `'${settings.webhookUrl}'`);
    await platform.#sql.unsafe(`${TABLES}; ${rows}`);
    return platform;
  }

  /** Checks a token by the program of the guide. */
  async check(token: string): Promise<Verdict> {
    const child = Bun.spawn([process.execPath, "docs/examples/check-token.mjs"], {
      cwd: ROOT,
      env: { REVIEWRELAY: this.#settings.root, SERVICE_TOKEN: this.service.token },
      stdin: Buffer.from(`${token}\n`),
      stderr: "ignore",
    });
    const [keys = "", asked = ""] = (await child.stdout.text()).trim().split(" ");
    return { keys, asked };
  }

  /**
   * Adds a note in a transaction with the action for ReviewRelay, unless `inserts` is false, and then sends the platform's
   * own webhook if the partner has not moved. Answers the text of the note.
   */
  async addNote({ inserts = true } = {}): Promise<string> {
    const id = ++this.#notes;
    const body = `Note ${id}`;
    const { schema } = this.#settings;
    const partner = await this.#sql.begin(async (tx) => {
      await tx`insert into notes values (${id}, 901, 502, ${body})`;
      if (inserts)
        await tx`
          insert into ${tx(schema)}.inbox (service_id, action)
          select ${this.service.id}::int, jsonb_build_object('id', 'note-' || ${id}::int,
            'event', 'note_added', 'occurred_at', now(), 'actor', '{"type": "user", "user_id": 502}'::jsonb,
            'review_id', id, 'metadata', jsonb_build_object('body', ${body}::text))
            from ${tx(schema)}.reviews where external_review_id = 'site-901'`;
      const [row] = await tx<{ moved: boolean; url: string }[]>`
        select webhooks_moved_at is not null as moved, webhook_url as url from partners for share`;
      return row;
    });
    if (partner?.moved === false) await this.#send(partner.url, body);
    return body;
  }

  countUsers = async () => (await this.#sql`select from users`).length;

  async stop(): Promise<void> {
    await this.#server.stop(true);
    await this.#sql.end();
  }

  async #send(url: string, note: string): Promise<void> {
    const body = JSON.stringify({
      event: "note_added",
      metadata: { body: note },
      from: "platform",
    });
    const digest = createHmac("sha256", PLATFORM.secret).update(body).digest("hex");
    await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-SVC-Signature": `sha256=${digest}` },
      body,
    });
  }

  /** Answers the old sign-in, and a page of the platform that accepts tokens of both sides. */
  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/api/v1/login") {
      const { email, password } = Object(await request.json());
      const [user] = await this.#sql<{ hash: string }[]>`
        select password_hash as hash from users where email = ${String(email)}`;
      const isRight =
        user !== undefined && (await Bun.password.verify(String(password), user.hash));
      return isRight ? Response.json({ token: "old-token" }) : new Response(null, { status: 401 });
    }
    const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
    if (pathname !== "/api/v1/account/billing") return new Response(null, { status: 404 });
    const isOurs = token === "old-token" || (await this.check(token)).asked !== "-";
    return new Response(null, { status: isOurs ? 200 : 401 });
  }
}
