import { sql } from "drizzle-orm";
import { integer, pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";

import { users } from "./companies.ts";
import { bigNumber, bytes, bytewise, instant, uniqueWhere } from "./columns.ts";
import { tokenId } from "./tokens.ts";

/** The id of the user that the row belongs to. Deleting the user deletes the row. */
const ownerId = () =>
  integer("user_id")
    .notNull()
    .references(() => users.id, { onDelete: "cascade" });

/** The second factors of users: passkeys, and at most one authenticator app of each user (contract 4.27). */
export const secondFactors = pgTable(
  "second_factors",
  {
    id: bytewise("id").primaryKey(),
    userId: ownerId(),
    kind: text("kind", { enum: ["totp", "passkey"] }).notNull(),
    name: text("name").notNull(),
    /** The secret of an authenticator app, sealed with the ids of user and factor as associated data. */
    sealedSecret: text("sealed_secret"),
    /** The time step of the last accepted code of an app. Codes of this step and of earlier steps are rejected. */
    lastStep: integer("last_step"),
    /** The WebAuthn credential of a passkey: its id in base64url, its COSE key and its signature counter. */
    credentialId: text("credential_id").unique("second_factors_credential_id_key"),
    publicKey: bytes("public_key"),
    signCount: bigNumber("sign_count"),
    transports: text("transports").array().notNull().default([]),
    createdAt: instant("created_at").notNull(),
    lastUsedAt: instant("last_used_at"),
  },
  (t) => [uniqueWhere("second_factors_one_app", sql`kind = 'totp'`, t.userId)],
);

/** The recovery codes that a user has not used yet. */
export const recoveryCodes = pgTable(
  "recovery_codes",
  { userId: ownerId(), codeHash: text("code_hash").notNull() },
  (t) => [primaryKey({ columns: [t.userId, t.codeHash] })],
);

/**
 * The unfinished steps of a token with second factors: a sign-in that waits for a second factor (tokens of kind
 * `challenge`), or a factor that is being set up or proved. The row is deleted with the token.
 */
export const secondFactorChallenges = pgTable("second_factor_challenges", {
  jti: tokenId().primaryKey(),
  /** The method of the sign-in that waits; null for the token of a session. */
  method: text("method", { enum: ["login", "password_reset", "authorization_code"] }),
  /** The number of wrong proofs. */
  tries: smallint("tries").notNull().default(0),
  /** The challenge of the newest WebAuthn options, and the time at which they were fetched. */
  passkeyChallenge: text("passkey_challenge"),
  passkeyAt: instant("passkey_at"),
  /**
   * The secret of an authenticator app that is being set up, sealed with the jti, and the time at which it was
   * generated.
   */
  sealedSecret: text("sealed_secret"),
  secretAt: instant("secret_at"),
});
