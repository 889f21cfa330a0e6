import { queryOptions } from "@tanstack/react-query";

import { answerOf, type ApiClient, type DataOf } from "../api/client.ts";
import { createPasskey, provePasskey } from "./passkeys.ts";

/** Second factors of the user whose token the client sends: of a session, or of a sign-in that waits for a factor. */
export const factorsOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["second-factors"],
    queryFn: () => answerOf(api.account["second-factors"].get()),
  });

export type Factor = DataOf<typeof factorsOptions>["factors"][number];

/** Way in which a user can prove a second factor. */
export type FactorMethod = "totp" | "passkey" | "recovery_code";

/** Returns the ways in which the user of a session can prove a second factor. */
export function methodsOf({
  factors,
  recovery_codes_left: codes,
}: DataOf<typeof factorsOptions>): FactorMethod[] {
  const kinds = new Set<FactorMethod>(factors.map(({ kind }) => kind));
  return [...kinds, ...(codes > 0 ? (["recovery_code"] as const) : [])];
}

/** Proof of a second factor, as the API takes it. */
export type Proof = NonNullable<Parameters<ApiClient["login"]["second-factor"]["post"]>[0]>;

/** Requests that add and prove second factors. */
export function factorRequests(api: ApiClient) {
  const own = api.account["second-factors"];
  return {
    /** Makes the secret of an authenticator app, which is added once the app has shown a code. */
    beginApp: () => answerOf(own.totp.post()),
    addApp: (draft: { readonly code: string; readonly name: string }) =>
      answerOf(own.totp.confirm.post({ code: draft.code, ...named(draft) })),
    /** Lets the browser create a passkey, and stores it under a name. */
    addPasskey: async (draft: { readonly name: string }) => {
      const options = await answerOf(own.passkeys["creation-options"].post());
      const credential = await createPasskey(options);
      return answerOf(own.passkeys.post({ credential, ...named(draft) }));
    },
    /** Lets the browser sign a challenge of the API with one of the user's passkeys. */
    proofByPasskey: async (): Promise<Proof> => {
      const options = await answerOf(own.passkeys["request-options"].post());
      return { passkey: await provePasskey(options) };
    },
    finishSignIn: (proof: Proof) => answerOf(api.login["second-factor"].post(proof)),
    stepUp: (proof: Proof) => answerOf(own["step-up"].post(proof)),
    remove: (id: string) => answerOf(own({ id }).delete()),
    renewRecoveryCodes: async () => (await answerOf(own["recovery-codes"].post())).recovery_codes,
  };
}

/** Answer of the API to a new factor. */
export type NewFactor = Awaited<ReturnType<ReturnType<typeof factorRequests>["addApp"]>>;

/** Returns the name of a factor as the API takes it. Without a name, the API chooses one. */
function named({ name }: { readonly name: string }) {
  return name.trim() === "" ? {} : { name: name.trim() };
}
