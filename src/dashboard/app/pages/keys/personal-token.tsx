import { Button, Group, Stack, Text } from "@mantine/core";

import { BASE_URL } from "../../api/connect.ts";
import { ConfirmedAction } from "../../ui/confirm.tsx";
import { CodeBlock, SecretField } from "../../ui/copy.tsx";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";
import { TokenError } from "./token-error.tsx";
import { usePersonalToken, type PersonalToken } from "./use-personal-token.ts";

const EXAMPLE = `curl -H "Authorization: Bearer $TOKEN" ${BASE_URL}/verify-token`;

/** The token is fetched on request only: the server writes each look into the audit log. */
export function PersonalTokenSection() {
  const own = usePersonalToken();
  return (
    <Section
      title="Personal access token"
      description="One per person, for your own integrations. It acts as you until you delete it or set a new password. It can be shown here again, and each look is in the audit log; secrets of clients are kept as hashes only, so that they are shown once."
      actions={
        own.token === undefined && (
          <Button onClick={own.open} loading={own.isBusy}>
            Manage token
          </Button>
        )
      }
    >
      {own.error !== null && <TokenError error={own.error} />}
      {own.token === null && (
        <Group justify="space-between">
          <Text size="sm">You have no token yet.</Text>
          <Button onClick={own.generate} loading={own.isBusy}>
            Generate token
          </Button>
        </Group>
      )}
      {own.token && <Token token={own.token} regenerate={own.regenerate} remove={own.remove} />}
    </Section>
  );
}

interface TokenProps {
  readonly token: PersonalToken;
  readonly regenerate: () => Promise<void>;
  readonly remove: () => Promise<void>;
}

function Token({ token, regenerate, remove }: TokenProps) {
  return (
    <Stack>
      <SecretField key={token.token} label="Token" value={token.token} />
      <Group justify="space-between" gap="sm">
        <Text size="sm" c="dimmed">
          Generated <ExactTime at={token.created_at} />, <LastUsed at={token.last_used_at} />
        </Text>
        <Group gap="xs">
          <RegenerateToken regenerate={regenerate} />
          <DeleteToken remove={remove} />
        </Group>
      </Group>
      <CodeBlock label="Try it" code={EXAMPLE} />
    </Stack>
  );
}

function RegenerateToken({ regenerate }: Pick<TokenProps, "regenerate">) {
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button variant="default" size="xs" onClick={ask}>
          Regenerate
        </Button>
      )}
      title="Regenerate the token?"
      action="Regenerate"
      danger
      onConfirm={async () => {
        await regenerate();
        notify.done("There is a new token. The old one works no more.");
      }}
    >
      The present token stops working at once, and with it everything that uses it, until it has the
      new one. This cannot be taken back.
    </ConfirmedAction>
  );
}

function DeleteToken({ remove }: Pick<TokenProps, "remove">) {
  return (
    <ConfirmedAction
      renderButton={(ask) => (
        <Button variant="light" color="red" size="xs" onClick={ask}>
          Delete
        </Button>
      )}
      title="Delete the token?"
      action="Delete"
      danger
      onConfirm={async () => {
        await remove();
        notify.done("The token is deleted.");
      }}
    >
      Everything that uses it stops working at once. You can generate another one later.
    </ConfirmedAction>
  );
}
