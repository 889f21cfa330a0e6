import { type Static, type TSchema, Type } from "@sinclair/typebox";

import { type RowOf, shown } from "../../http/shown.ts";
import { instantAnswer, orNull, secretText, shortName, storableText } from "../../http/text.ts";
import { literals } from "../../http/principal.ts";
import { loginAnswer } from "../model.ts";

const closed = { additionalProperties: false } as const;
const instant = instantAnswer();
const name = Type.Optional(shortName);

export type FactorMethod = "totp" | "passkey" | "recovery_code";

/** The member `second_factor` of a 401 `second_factor_required`; src/http/openapi describes it. */
export interface Challenge {
  readonly challenge_token: string;
  readonly expires_in: number;
  readonly methods: readonly FactorMethod[];
  readonly enrol: boolean;
}

/**
 * Declares a schema of base64url text of at most `max` characters. Browsers send the parts of a credential in this
 * form.
 */
const base64url = (max: number): TSchema & { static: string } =>
  Type.String({
    pattern: `^[A-Za-z0-9_-]{1,${max}}$`,
    explain: `must be base64url of at most ${max} characters`,
    examples: ["T2Zmd2hpdGU"],
  });

/**
 * Schema of a credential id. The longest id has 1,023 bytes (WebAuthn Level 3, 4), which are 1,364 characters of
 * base64url.
 */
const credentialId = base64url(1_364);
const MAX_CLIENT_DATA = 8_192;
/** Schema option that ignores unknown members, because browsers add further ones to a credential. */
const open = { additionalProperties: true } as const;

const assertionBody = Type.Object(
  {
    id: credentialId,
    response: Type.Object(
      {
        clientDataJSON: base64url(MAX_CLIENT_DATA),
        authenticatorData: base64url(4_096),
        signature: base64url(8_192),
      },
      { ...open, title: "PasskeyAssertionResponse", description: "Response of the authenticator." },
    ),
  },
  { ...open, title: "PasskeyAssertion", description: "The assertion of a browser." },
);
export type AssertionBody = Static<typeof assertionBody>;

export const proofBody = Type.Object(
  {
    code: Type.Optional(
      Type.String({
        pattern: "^[0-9]{6}$",
        explain: "must be the six digits that the app shows",
        examples: ["492039"],
      }),
    ),
    recovery_code: Type.Optional(
      Object.assign(storableText([1, 64]), { examples: ["7k2m-9xw4-p0qe-3rtz-v8h5-6cjd"] }),
    ),
    passkey: Type.Optional(assertionBody),
  },
  { ...closed, title: "FactorProof", examples: [{ code: "492039" }] },
);
export type ProofBody = Static<typeof proofBody>;

const credentialBody = Type.Object(
  {
    id: credentialId,
    response: Type.Object(
      {
        clientDataJSON: base64url(MAX_CLIENT_DATA),
        attestationObject: base64url(32_768),
        transports: Type.Optional(
          Type.Array(Type.String({ pattern: "^[a-z-]{1,32}$", examples: ["internal"] }), {
            maxItems: 10,
          }),
        ),
      },
      {
        ...open,
        title: "PasskeyAttestationResponse",
        description: "Response of the authenticator.",
      },
    ),
  },
  { ...open, title: "PasskeyAttestation", description: "The credential that a browser created." },
);
export type CredentialBody = Static<typeof credentialBody>;

export const newPasskeyBody = Type.Object(
  { credential: credentialBody, name },
  { ...closed, title: "PasskeyInput", examples: [{ name: "Laptop" }] },
);

export const confirmTotpBody = Type.Object(
  {
    code: Type.String({
      pattern: "^[0-9]{6}$",
      explain: "must be the six digits that the app shows",
      examples: ["492039"],
    }),
    name,
  },
  { ...closed, title: "AuthenticatorAppInput", examples: [{ code: "492039", name: "Phone" }] },
);

export const newTotpAnswer = Type.Object(
  {
    secret: secretText({ description: "The secret in base 32.", examples: ["JBSWY3DPEHPK3PXP"] }),
    uri: secretText({
      description: "The `otpauth://` URI for a QR code.",
      examples: ["otpauth://totp/ReviewRelay:owner%40partner.example?secret=JBSWY3DPEHPK3PXP"],
    }),
  },
  { title: "AuthenticatorAppSecret" },
);

const factorObject = Type.Object(
  {
    id: Type.String(),
    kind: literals(["totp", "passkey"], {
      title: "FactorKind",
      description: "Kind of the factor.",
    }),
    name: Type.String(),
    created_at: instant,
    last_used_at: orNull(instant),
  },
  {
    title: "SecondFactor",
    description: "A second factor.",
    examples: [{ kind: "totp", name: "Phone" }],
  },
);
export type FactorAnswer = Static<typeof factorObject>;

export function showFactor(row: RowOf<typeof factorObject>): FactorAnswer {
  return shown(factorObject, row);
}

export const factorsAnswer = Type.Object(
  {
    factors: Type.Array(factorObject),
    recovery_codes_left: Type.Integer(),
    is_required: Type.Boolean({
      description: "Whether the company of the user requires a factor.",
    }),
    fresh_until: orNull(instant),
  },
  { title: "SecondFactors", examples: [{ recovery_codes_left: 10, is_required: false }] },
);
export type FactorsAnswer = Static<typeof factorsAnswer>;

const codes = Type.Array(secretText({ examples: ["7k2m-9xw4-p0qe-3rtz-v8h5-6cjd"] }));

export const newFactorAnswer = Type.Object(
  {
    factor: factorObject,
    recovery_codes: orNull(codes),
    sign_in: orNull(loginAnswer),
  },
  { title: "SecondFactorAdded", examples: [{ recovery_codes: null, sign_in: null }] },
);
export type NewFactorAnswer = Static<typeof newFactorAnswer>;

export const recoveryCodesAnswer = Type.Object(
  { recovery_codes: codes },
  { title: "RecoveryCodes" },
);
export const freshAnswer = Type.Object({ fresh_until: instant }, { title: "FreshSession" });

/**
 * Declares the schema of the options that a browser passes to `navigator.credentials`, in the JSON form of WebAuthn.
 */
const optionsOf = (title: string) =>
  Type.Object(
    { challenge: Type.String({ examples: ["T2Zmd2hpdGU"] }) },
    { ...open, title, description: "JSON as WebAuthn Level 3 defines it." },
  );
export const creationOptionsAnswer = optionsOf("PasskeyCreationOptions");
export const requestOptionsAnswer = optionsOf("PasskeyRequestOptions");
