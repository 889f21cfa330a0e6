import type { Db } from "../../../db/client.ts";
import { BASE_PATH } from "../../http/base-path.ts";
import type { Config } from "../../lib/config.ts";
import { emailDomain, normaliseEmail } from "../email.ts";
import type { DiscoverAnswer } from "../password-model.ts";
import { findDomainPolicy } from "../queries/sso.ts";

/** `POST /auth/discover` answers from the domain's policy alone and looks up no user (contract 4.12). */
export async function discover(
  { db, config }: { db: Db; config: Pick<Config, "serverRoot"> },
  email: string,
): Promise<DiscoverAnswer> {
  const policy = await findDomainPolicy(db, emailDomain(normaliseEmail(email)));
  if (policy === undefined)
    return { methods: ["password"], password: true, sso: false, sso_url: null };
  const query = new URLSearchParams({ connection: policy.connectionId });
  return {
    methods: policy.passwordLogin ? ["password", "sso"] : ["sso"],
    password: policy.passwordLogin,
    sso: true,
    sso_url: `${config.serverRoot}${BASE_PATH}/auth/sso/redirect?${query.toString()}`,
  };
}
