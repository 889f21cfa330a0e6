import { Checkbox, Radio, Stack, Switch } from "@mantine/core";

import { isGrantType, type ClientDraft } from "./client-model.ts";

interface KindFieldProps {
  readonly isConfidential: boolean;
  readonly onChange: (isConfidential: boolean) => void;
}

/** The kind of a client is fixed once it exists. */
export function KindField({ isConfidential, onChange }: KindFieldProps) {
  return (
    <Radio.Group
      label="Where it runs"
      value={isConfidential ? "confidential" : "public"}
      onChange={(next) => onChange(next === "confidential")}
    >
      <Stack gap={8} mt={8}>
        <Radio
          value="confidential"
          label="On a server"
          description="It can keep a secret: a confidential client."
        />
        <Radio
          value="public"
          label="In a browser or on a phone"
          description="It cannot: a public client without a secret, which must use PKCE."
        />
      </Stack>
    </Radio.Group>
  );
}

interface GrantsFieldProps {
  readonly draft: ClientDraft;
  readonly onChange: (change: Partial<ClientDraft>) => void;
  readonly isPlatform: boolean;
  readonly error: string | undefined;
}

export function GrantsField({ draft, onChange, isPlatform, error }: GrantsFieldProps) {
  return (
    <>
      <Checkbox.Group
        label="Grant types"
        value={[...draft.grantTypes]}
        onChange={(next) => onChange({ grantTypes: next.filter(isGrantType) })}
        error={error}
      >
        <Stack gap={8} mt={8}>
          <Checkbox
            value="authorization_code"
            label="Authorization code"
            description="People sign in on our page."
          />
          <Checkbox
            value="refresh_token"
            label="Refresh token"
            description="They stay signed in for 30 days from each use."
          />
          {(isPlatform || draft.grantTypes.includes("password")) && (
            <Checkbox
              value="password"
              label="Password"
              description="For trusted servers of our own only: they see the password."
              disabled={!draft.confidential}
            />
          )}
        </Stack>
      </Checkbox.Group>
      {isPlatform && (
        <Switch
          label="First-party"
          description="An app of our own: nobody is asked for consent."
          checked={draft.firstParty}
          onChange={(event) => onChange({ firstParty: event.currentTarget.checked })}
        />
      )}
    </>
  );
}
