// A small platform with users, webhooks and tables of its own, into which ReviewRelay moves.
import { createHmac } from "node:crypto";

import postgres from "postgres";

import { ROOT } from "../../scripts/install/install.ts";
import { fieldsOf } from "../../src/lib/fields.ts";

/** Whether partners and accounts are in one table, so that their ids differ, or each kind has a table of its own. */
export type Shape = "one" | "two";

const COMPANY = `id bigserial primary key, name varchar(255), is_active smallint not null default 1, plan_id bigint,
  created_at timestamp(0), updated_at timestamp(0), deleted_at timestamp(0)`;
const PARTNER = `webhook_ulid varchar(26), webhook_url text, webhook_secret text, webhooks_moved_at timestamp(6)`;

/** The tables of the companies, and the columns by which users name them. */
const COMPANIES: Readonly<Record<Shape, { tables: string; ofUser: string }>> = {
  one: {
    tables: `create table companies (${COMPANY}, ${PARTNER}, type varchar(255) not null, parent_id bigint)`,
    ofUser: "company_id bigint",
  },
  two: {
    tables: `create table partners (${COMPANY}, ${PARTNER});
      create table accounts (${COMPANY}, partner_id bigint references partners)`,
    ofUser: "partner_id bigint, account_id bigint",
  },
};

/**
 * The other tables, as migrations of Laravel make them: `timestamp` without a zone, soft deletes, flags as smallint. Several
 * have the names of tables of ReviewRelay.
 */
const TABLES = `
  create table plans (id bigserial primary key, name varchar(255) not null);
  create table review_sites (id bigserial primary key, slug varchar(255) not null, name varchar(255) not null, secret text);
  create table stores (id bigserial primary key, account_id bigint not null, name varchar(255), deleted_at timestamp(0));
  create table store_review_sites (id bigserial primary key, store_id bigint not null references stores,
    review_site_id bigint not null references review_sites, deleted_at timestamp(0));
  create table users (id bigserial primary key, $OF_USER, email varchar(255) not null unique, name varchar(255),
    role varchar(255) not null, password_hash varchar(255), is_active smallint not null default 1, deleted_at timestamp(0));
  create table reviews (id bigserial primary key, store_review_site_id bigint not null references store_review_sites,
    site_review_id varchar(255) not null, rate smallint not null, reviewer varchar(255), content text,
    reviewed_at timestamp(0) not null, created_at timestamp(0) default (now() at time zone 'UTC'), deleted_at timestamp(0),
    webhooks_moved boolean not null default false);
  create table notes (id bigserial primary key, review_id bigint not null references reviews,
    user_id bigint not null references users, body text not null)`;

export const PARTNERS: Readonly<Record<Shape, string>> = { one: "companies", two: "partners" };

export const PLATFORM = {
  userId: 1,
  email: "pat@northwind.example",
  password: "an old password",
  /** The secret that the partner has for the platform's webhooks. */
  secret: "whsec_5eb3f0c2a1",
  /** The secret of the puller of the review site. */
  pullerSecret: "secret of the puller",
  subscriptionId: "01JABCDEFGHJKMNPQRSTVWXYZ0",
  /** The user whose address another user has in other upper and lower case. */
  doubledId: 3,
} as const;

/** The ids that a webhook shows besides that of its review; the actor is that of notes. */
export const SHOWN = { partner: 1, actor: 2, store: 1, site: 1 } as const;

const PARTNER_ROW = `'${PLATFORM.subscriptionId}', $URL, '${PLATFORM.secret}'`;

/** A partner with an account, and a deleted partner with an account that is not. Both first ids are 1 in `two`. */
const COMPANY_ROWS: Readonly<Record<Shape, string>> = {
  one: `
    insert into companies (type, name, webhook_ulid, webhook_url, webhook_secret)
      values ('partner', 'Northwind Agency', ${PARTNER_ROW});
    insert into companies (type, name, parent_id, plan_id) values ('account', null, 1, 1);
    insert into companies (type, name, deleted_at) values ('partner', 'Gone', now());
    insert into companies (type, name, parent_id, plan_id) values ('account', 'Of a deleted partner', 3, 1)`,
  two: `
    insert into partners (name, webhook_ulid, webhook_url, webhook_secret) values ('Northwind Agency', ${PARTNER_ROW});
    insert into accounts (name, partner_id, plan_id) values (null, 1, 1);
    insert into partners (name, deleted_at) values ('Gone', now());
    insert into accounts (name, partner_id, plan_id) values ('Of a deleted partner', 2, 1)`,
};

/** The ids of the companies: of the partner, its account, and the account of the deleted partner. */
const IDS: Readonly<Record<Shape, { account: number; left: number; users: string }>> = {
  one: { account: 2, left: 4, users: "company_id" },
  two: { account: 1, left: 2, users: "partner_id, account_id" },
};
/** The account at ReviewRelay: in two tables it has moved by the offset of the guide. */
export const ACCOUNT_ID: Readonly<Record<Shape, number>> = { one: 2, two: 1_000_001 };

function rowsOf(shape: Shape): string {
  const { account, left, users } = IDS[shape];
  const ofPartner = shape === "one" ? "1" : "1, null";
  const ofAccount = shape === "one" ? account : `null, ${account}`;
  return `${COMPANY_ROWS[shape]};
    insert into plans (name) values ('Growth');
    insert into review_sites (slug, name, secret) values ('google', 'Google', '${PLATFORM.pullerSecret}');
    insert into stores (account_id, name) values (${account}, 'Alder Plumbing East'), (${left}, 'Of a deleted partner');
    insert into stores (account_id, name, deleted_at) values (${account}, 'Closed', now());
    insert into store_review_sites (store_id, review_site_id) values (1, 1), (2, 1), (3, 1);
    insert into users (${users}, email, name, role, password_hash, deleted_at) values
      (${ofPartner}, '${PLATFORM.email}', 'Pat', 'partner_owner', $HASH, null),
      (${ofAccount}, 'ada@alder.example', null, 'account_owner', $HASH, null),
      (${ofAccount}, 'Ada@Alder.example', 'Ada', 'account_user', $HASH, null),
      (${ofAccount}, 'left@alder.example', 'Left', 'account_user', $HASH, now());
    insert into reviews (store_review_site_id, site_review_id, rate, reviewer, content, reviewed_at, deleted_at) values
      (1, 'site-1', 4, 'Sam', 'On time.', '2025-07-01 12:00:00', null),
      (1, 'site-2', 5, '', '', '2025-07-02 12:00:00', null),
      (1, 'site-3', 1, null, 'Spam', '2025-07-03 12:00:00', now()),
      (2, 'site-4', 1, null, null, '2025-07-04 12:00:00', null)`;
}

interface Settings {
  readonly shape: Shape;
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

interface Partner {
  /** Whether ReviewRelay sends its webhooks. */
  readonly isMoved: boolean;
  readonly url: string;
}

/** The parts of the platform's webhooks that differ. `id` is that of the review. */
interface Sent {
  readonly event: "review_received" | "note_added";
  readonly id: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export class Platform {
  readonly #settings: Settings;
  readonly #sql: postgres.Sql;
  readonly #server: Bun.Server<undefined>;
  #notes = 100;
  #reviews = 100;
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
    const { shape, webhookUrl } = settings;
    const { tables, ofUser } = COMPANIES[shape];
    const rows = rowsOf(shape).replaceAll("$HASH", `'${hash}'`).replace("$URL", `'${webhookUrl}'`);
    await platform.#sql.unsafe(`${tables}; ${TABLES.replace("$OF_USER", ofUser)}; ${rows}`);
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
   * Adds a review that a puller reports, and then sends the platform's own webhook if the partner has not moved. Answers the
   * id of the review.
   */
  async addReview(): Promise<number> {
    const id = ++this.#reviews;
    const content = `Review ${id}`;
    const { isMoved, url } = await this.#sql.begin(async (tx) => {
      const partner = await this.#partner(tx);
      await tx`
        insert into reviews (id, store_review_site_id, site_review_id, rate, content, reviewed_at, webhooks_moved)
        values (${id}, 1, ${`site-${id}`}, 4, ${content}, '2025-08-01 12:00:00', ${partner.isMoved})`;
      return partner;
    });
    if (!isMoved) await this.#send(url, { event: "review_received", id, metadata: { content } });
    return id;
  }

  /**
   * Adds a note in a transaction with the action for ReviewRelay, unless `inserts` is false, and then sends the platform's
   * own webhook if the partner has not moved. Repeats the transaction until ReviewRelay has the review. Answers the text of
   * the note.
   */
  async addNote({ inserts = true, review = 1 } = {}): Promise<string> {
    const id = ++this.#notes;
    const body = `Note ${id} of review ${review}`;
    const write = () =>
      this.#sql
        .begin(async (tx) => {
          await tx`insert into notes values (${id}, ${review}, ${SHOWN.actor}, ${body})`;
          if (inserts) await this.#insertAction(tx, id);
          return this.#partner(tx);
        })
        .catch((error: unknown) => {
          if (error instanceof postgres.PostgresError && error.column_name === "action")
            return "review is missing" as const;
          throw error;
        });
    let partner = await write();
    while (partner === "review is missing") {
      await Bun.sleep(200);
      partner = await write();
    }
    if (!partner.isMoved)
      await this.#send(partner.url, { event: "note_added", id: review, metadata: { body } });
    return body;
  }

  /** Inserts the action of a note, as the guide does. */
  async #insertAction(tx: postgres.TransactionSql, note: number): Promise<void> {
    const { schema } = this.#settings;
    await tx`
      insert into ${tx(schema)}.inbox (service_id, action)
      select ${this.service.id}::int, case when r.id is not null then jsonb_build_object('id', 'note-' || n.id,
        'event', 'note_added', 'occurred_at', now(),
        'actor', jsonb_build_object('type', 'user', 'user_id', n.user_id),
        'review_id', r.id, 'metadata', jsonb_build_object('body', n.body)) end
        from notes n join reviews own on own.id = n.review_id left join ${tx(schema)}.reviews r
          on r.store_review_site_id = own.store_review_site_id and r.external_review_id = own.site_review_id
       where n.id = ${note}`;
  }

  /** Reads whether the partner has moved, and holds that until the end of the transaction. */
  async #partner(tx: postgres.TransactionSql): Promise<Partner> {
    const [row] = await tx<Partner[]>`
      select webhooks_moved_at is not null as "isMoved", webhook_url as url
        from ${tx(PARTNERS[this.#settings.shape])} where id = ${SHOWN.partner} for share`;
    if (row === undefined) throw new Error("The platform has no partner.");
    return row;
  }

  /** Merges the two users of one mailbox, as the import asks for. */
  async mergeUsers(): Promise<void> {
    await this.#sql`update users set deleted_at = now() where id = ${PLATFORM.doubledId}`;
  }

  countUsers = async () => (await this.#sql`select from users`).length;

  async stop(): Promise<void> {
    await this.#server.stop(true);
    await this.#sql.end();
  }

  async #send(url: string, { event, id, metadata }: Sent): Promise<void> {
    const { partner, actor, store, site } = SHOWN;
    const body = JSON.stringify({
      event,
      partner: { id: partner },
      actor: { id: event === "note_added" ? actor : null },
      review: { id, store_id: store, review_site_id: site },
      metadata,
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
      const { email, password } = fieldsOf(await request.json());
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
