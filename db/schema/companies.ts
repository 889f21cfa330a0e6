import { sql } from "drizzle-orm";
import {
  type AnyPgColumn,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";

import { bigid, bigNumber, id, instant, state, timestamps, uniqueWhere } from "./columns.ts";

/**
 * The id that the platform itself uses for the company, store, user or review; unique within its kind (contract 10.6).
 */
export const externalId = () => text("external_id");
/** The time of the last change. A trigger sets it. */
export const updatedAt = () => instant("updated_at").notNull().defaultNow();

export const plans = pgTable("plans", {
  id: id(),
  name: text("name").notNull().unique("plans_name_key"),
  features: text("features").array().notNull(),
});

export const companies = pgTable(
  "companies",
  {
    id: id(),
    type: text("type", { enum: ["platform", "partner", "account"] }).notNull(),
    name: text("name").notNull(),
    partnerId: integer("partner_id").references((): AnyPgColumn => companies.id),
    planId: integer("plan_id").references(() => plans.id),
    isActive: boolean("is_active").notNull().default(true),
    primaryColor: text("primary_color").notNull(),
    logoUrl: text("logo_url"),
    whiteLabelEnabled: boolean("white_label_enabled").notNull().default(false),
    brandName: text("brand_name"),
    whiteLabelDomain: text("white_label_domain").unique("companies_white_label_domain_key"),
    /** Whether the users of the company itself need a second factor (contract 4.27). */
    requireSecondFactor: boolean("require_second_factor").notNull().default(false),
    externalId: externalId(),
    createdAt: instant("created_at").notNull(),
    updatedAt: updatedAt(),
  },
  (t) => [
    uniqueIndex("companies_external_id").on(t.type, t.externalId),
    uniqueWhere("companies_one_platform", sql`type = 'platform'`, t.type),
    index("companies_inactive")
      .on(t.partnerId)
      .where(sql`not is_active`),
  ],
);

export const companyId = (name: string) => integer(name).references(() => companies.id);

export const stores = pgTable("stores", {
  id: id(),
  accountId: companyId("account_id").notNull(),
  partnerId: companyId("partner_id").notNull(),
  name: text("name").notNull(),
  externalId: externalId().unique("stores_external_id"),
  updatedAt: updatedAt(),
});

export const storeId = () => integer("store_id").references(() => stores.id);

export const users = pgTable(
  "users",
  {
    id: id(),
    companyId: companyId("company_id").notNull(),
    email: text("email").notNull().unique("users_email_key"),
    /**
     * The normal form of the email (`normalEmail` in src/lib/email.ts), by which users are compared. Null if an earlier
     * version wrote the email: the normal form is then either the email itself, or will be computed by
     * `completeEmails`. A trigger sets it to null when such a version changes the email.
     */
    normalEmail: text("normal_email"),
    /**
     * Whether another user already had the same normal form. The unique index distinguishes such users by their ids.
     */
    sharesEmail: boolean("shares_email").notNull().default(false),
    name: text("name").notNull(),
    role: text("role", {
      enum: [
        "super_admin",
        "partner_owner",
        "partner_admin",
        "partner_integration",
        "account_owner",
        "account_user",
        "location_user",
        "service",
      ],
    }).notNull(),
    /**
     * The scopes of an integration of a partner (contract 10.10); null for all other users. A check ties them to the
     * role, and refuses a password and an address.
     */
    scopes: text("scopes").array(),
    /**
     * The hash of the user's password. Null for users without a password, for example those that sign in only through
     * an identity provider.
     */
    passwordHash: text("password_hash"),
    isActive: boolean("is_active").notNull().default(true),
    externalId: externalId().unique("users_external_id"),
    ...timestamps(),
  },
  (t) => [
    // Users of earlier versions may share a normal form. The index distinguishes them by their ids.
    uniqueIndex("users_normal_email_key")
      .on(t.normalEmail, sql`(case when shares_email then id else 0 end)`)
      .where(sql`normal_email is not null`),
  ],
);

export const userId = (name: string) => integer(name).references(() => users.id);

/** The stores to which a location user has access. */
export const userStores = pgTable(
  "user_stores",
  {
    userId: userId("user_id").notNull(),
    storeId: storeId().notNull(),
  },
  (t) => [primaryKey({ columns: [t.userId, t.storeId] })],
);

/**
 * A service of the platform (contract 10.7). It is a user of the platform without a password and with the role
 * `service`, so its tokens and its rows in the audit log are like those of any user.
 */
export const services = pgTable("services", {
  id: userId("id").primaryKey(),
  scopes: text("scopes").array().notNull(),
  /** The partners for which the service acts; null if it acts for all partners. */
  partnerIds: integer("partner_ids").array(),
});

/**
 * The ids that services gave to their actions. They are stored forever, and an action with a known id is not recorded
 * again.
 */
export const serviceActions = pgTable(
  "service_actions",
  {
    serviceId: integer("service_id").notNull(),
    id: text("id").notNull(),
    takenAt: instant("taken_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.serviceId, t.id] })],
);

/**
 * Actions that services of the platform insert in their own transactions (contract 9.8): `insert into inbox
 * (service_id, action)`. A trigger sets the other columns. If an action was committed before another was inserted, it
 * has the lower position.
 */
export const inbox = pgTable(
  "inbox",
  {
    position: bigNumber("position").primaryKey(),
    serviceId: integer("service_id").notNull(),
    action: jsonb("action").notNull(),
    /** The partner of the review or connection that the action refers to; 0 if there is none. */
    partnerId: integer("partner_id").notNull(),
    state: state("waiting", "rejected"),
    /** The reasons of a rejection by field. */
    errors: jsonb("errors").$type<Readonly<Record<string, string>>>(),
    insertedAt: instant("inserted_at").notNull().defaultNow(),
  },
  (t) => [index("inbox_state").on(t.state, t.partnerId, t.position)],
);

/** The progress of imports (contract 10.9), so that an interrupted import can continue. */
export const imports = pgTable("imports", {
  file: text("file").primaryKey(),
  /**
   * The number of bytes of the file up to the last committed line, the number of these lines, and the SHA-256 of these
   * bytes.
   */
  bytes: bigNumber("bytes").notNull(),
  lines: bigNumber("lines").notNull(),
  digest: text("digest").notNull(),
  /** The numbers of lines by kind of record and by result. */
  counts: jsonb("counts").$type<ImportCounts>().notNull(),
  startedAt: instant("started_at").notNull(),
  finishedAt: instant("finished_at"),
});

/**
 * The numbers of lines by kind of record (contract 10.9): lines that created a record, that found it already present,
 * and that were rejected.
 */
export type ImportCounts = Record<string, { created: number; present: number; faulty: number }>;

export const auditLog = pgTable("audit_log", {
  id: bigid(),
  at: instant("at").notNull(),
  action: text("action").notNull(),
  actorId: userId("actor_id"),
  impersonatorId: userId("impersonator_id"),
  companyId: companyId("company_id"),
  ip: text("ip"),
  userAgent: text("user_agent"),
  requestId: text("request_id"),
  details: jsonb("details").$type<Readonly<Record<string, unknown>>>().notNull(),
});

/**
 * The webhook to which the audit log of the platform is sent, and its progress (contract 3.12). The table has one row.
 */
export const auditWebhooks = pgTable("audit_webhooks", {
  /** Always `platform`. */
  id: text("id").primaryKey(),
  url: text("url").notNull(),
  sealedSecret: text("sealed_secret").notNull(),
  /**
   * Incremented with each change of the settings, so that the result of a POST with older settings does not change the
   * position.
   */
  version: integer("version").notNull(),
  /** The id of the last audit row that the receiver has accepted. */
  afterId: bigNumber("after_id").notNull(),
  /**
   * The number of failed POSTs since the last accepted one, and the error and time of the last failure; 0 and null
   * without one.
   */
  failures: integer("failures").notNull().default(0),
  lastError: text("last_error"),
  failedAt: instant("failed_at"),
  nextAt: instant("next_at").notNull(),
  deliveredAt: instant("delivered_at"),
  /** The number of rows that retention has deleted before they were accepted. */
  lostRows: bigNumber("lost_rows").notNull().default(0),
  ...timestamps(),
});
