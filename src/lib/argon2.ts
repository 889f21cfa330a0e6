import type * as Library from "@node-rs/argon2";

/** Parameters of contract 4.17, with one lane. */
const COST = { memoryCost: 19_456, timeCost: 2 } as const;
/** The beginning of each hash that {@link argon2} makes. */
export const ARGON2ID_PREFIX = "$argon2id$v=19$m=19456,t=2,p=1$";

/** Hashes of argon2 in the PHC string format, computed off the event loop. */
export interface Argon2 {
  /** Hashes with argon2id and the parameters of contract 4.17. */
  hash(password: string): Promise<string>;
  /** Verifies a hash of argon2i or argon2id with any parameters. Throws if it is malformed. */
  verify(password: string, hash: string): Promise<boolean>;
}

/**
 * A library in Rust, which takes half the time of Bun's implementation. It is native code: an executable writes it to
 * the directory of temporary files and loads it from there. Where that fails, Bun does the work.
 */
export const argon2 = await import("@node-rs/argon2").then(argon2Of, () => argon2Of());

/** Returns argon2 as the library computes it, or as Bun does if the library is absent. */
export function argon2Of(library?: Pick<typeof Library, "hash" | "verify">): Argon2 {
  if (library === undefined)
    return {
      hash: (password) => Bun.password.hash(password, { ...COST, algorithm: "argon2id" }),
      verify: (password, hash) => Bun.password.verify(password, hash),
    };
  return {
    hash: (password) => library.hash(password, { ...COST, parallelism: 1 }),
    verify: (password, hash) => library.verify(hash, password),
  };
}
