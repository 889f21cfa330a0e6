import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient, apiErrorOf } from "../../api/client.ts";
import { BASE_URL } from "../../api/connect.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { CodeBlock, SecretField } from "../../ui/copy.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Section } from "../../ui/layout.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";

const EXAMPLE = `curl -H "Authorization: Bearer $TOKEN" ${BASE_URL}/verify-token`;

/**
 * Shows the user's personal token on request only, because the API writes each read of the token into the audit
 * log.
 */
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
          <ConfirmedAction
            label="Regenerate"
            button={{ size: "xs" }}
            title="Regenerate the token?"
            action="Regenerate"
            danger
            onConfirm={regenerate}
            done="There is a new token. The old one works no more."
          >
            The present token stops working at once, and with it everything that uses it, until it
            has the new one. This cannot be taken back.
          </ConfirmedAction>
          <ConfirmedAction
            label="Delete"
            button={{ variant: "light", color: "red", size: "xs" }}
            title="Delete the token?"
            action="Delete"
            danger
            onConfirm={remove}
            done="The token is deleted."
          >
            Everything that uses it stops working at once. You can generate another one later.
          </ConfirmedAction>
        </Group>
      </Group>
      <CodeBlock label="Try it" code={EXAMPLE} />
    </Stack>
  );
}

/**
 * Explains why the personal token cannot be read. A 403 means that the role may have a token, but the user
 * signed in by a method that may not manage it (contract 4.18).
 */
function TokenError({ error }: { readonly error: unknown }) {
  const { signOut } = useSessionState();
  if (apiErrorOf(error)?.code !== "forbidden") return <ErrorNotice error={error} />;
  return (
    <Alert
      role="alert"
      color="yellow"
      variant="light"
      icon={<Icon name="lock" />}
      title="This sign-in may not manage the token"
    >
      <Group justify="space-between">
        <Text size="sm" className="grows">
          You came in by choosing a new password. The token is shown only to somebody who signed in
          with a password or through single sign-on: sign out, then in again.
        </Text>
        <Button variant="default" size="xs" onClick={signOut}>
          Sign out
        </Button>
      </Group>
    </Alert>
  );
}

/**
 * Reads the personal token on request. `token` is undefined before the request, and null if the user has no
 * token. Only the component's state contains the token, so leaving the page drops it.
 */
function usePersonalToken() {
  const api = useApi();
  const [token, setToken] = useState<PersonalToken | null>();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (read: typeof viewToken) => read(api),
    onSuccess: (read) => setToken(read),
  });
  return {
    token,
    error,
    isBusy: isPending,
    open: () => mutate(viewToken),
    generate: () => mutate(generateToken),
    regenerate: async () => setToken(await answerOf(api.account["api-token"].regenerate.post())),
    remove: async () => {
      await answerOf(api.account["api-token"].delete());
      setToken(null);
    },
  };
}

async function viewToken(api: ApiClient) {
  try {
    return await answerOf(api.account["api-token"].get());
  } catch (error) {
    if (apiErrorOf(error)?.status === 404) return null;
    throw error;
  }
}

type PersonalToken = NonNullable<Awaited<ReturnType<typeof viewToken>>>;

async function generateToken(api: ApiClient): Promise<PersonalToken | null> {
  try {
    return await answerOf(api.account["api-token"].post());
  } catch (error) {
    if (apiErrorOf(error)?.code !== "token_exists") throw error;
    // Reads the token after a conflict, because another tab created the token first.
    return viewToken(api);
  }
}
