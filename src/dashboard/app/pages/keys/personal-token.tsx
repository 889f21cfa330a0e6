import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient, apiErrorOf } from "../../api/client.ts";
import { BASE_URL } from "../../api/connect.ts";
import { useApi, useSessionState } from "../../session/session.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { SecretField } from "../../ui/secret.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Section, Dimmed } from "../../ui/layout.tsx";
import { useRefresh } from "../../ui/pages.ts";
import { ErrorNotice } from "../../ui/states.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";
import { personalTokenOptions } from "./data.ts";

const TOKEN_EXAMPLE = `curl -H "Authorization: Bearer $TOKEN" ${BASE_URL}/verify-token`;

/**
 * Shows the user's personal access token, or a button that generates one. It appears only after the user has asked for
 * it, because the API writes each read into the audit log.
 */
export function PersonalToken({ own }: { readonly own: ReturnType<typeof usePersonalToken> }) {
  const { token } = own;
  if (!own.isOpen) return null;
  return (
    <Section
      title="Personal access token"
      description="Acts as you until you delete it or set a new password. Each view is recorded in the audit log."
    >
      {own.error !== null && <TokenError error={own.error} />}
      {token && <Token token={token} regenerate={own.regenerate} remove={own.remove} />}
      {own.use === null && own.error === null && (
        <Button loading={own.isBusy} onClick={own.generate}>
          Generate token
        </Button>
      )}
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
        <Dimmed size="sm">
          Generated <ExactTime at={token.created_at} />. Last used:{" "}
          <LastUsed at={token.last_used_at} />
        </Dimmed>
        <Group gap="xs">
          <ConfirmedAction
            label="Regenerate"
            button={{ size: "xs" }}
            title="Regenerate the token?"
            action="Regenerate"
            danger
            onConfirm={regenerate}
            done="Token regenerated. The previous one no longer works."
          >
            The current token stops working immediately, and so does everything that uses it until
            you configure the new one. This cannot be undone.
          </ConfirmedAction>
          <ConfirmedAction
            label="Delete"
            button={{ variant: "light", color: "red", size: "xs" }}
            title="Delete the token?"
            action="Delete"
            danger
            onConfirm={remove}
            done="Token deleted."
          >
            Everything that uses it stops working immediately. You can generate another one later.
          </ConfirmedAction>
        </Group>
      </Group>
      <CodeBlock label="Try it" code={TOKEN_EXAMPLE} />
    </Stack>
  );
}

/**
 * Explains why the personal access token cannot be read. A 403 means that the role may have a token, but the user
 * signed in by a method that may not manage it (contract 4.18).
 */
function TokenError({ error }: { readonly error: unknown }) {
  const { signOut } = useSessionState();
  if (apiErrorOf(error)?.code !== "forbidden") return <ErrorNotice error={error} />;
  return (
    <Alert
      role="alert"
      color="yellow"
      icon={<Icon name="lock" />}
      title="Sign in again to manage the token"
    >
      <Group justify="space-between">
        <Text size="sm" className="grows">
          You signed in by setting a new password. Only a sign-in with a password or single sign-on
          can show the token.
        </Text>
        <Button variant="default" size="xs" onClick={signOut}>
          Sign out
        </Button>
      </Group>
    </Alert>
  );
}

/**
 * Reads the personal access token on request. `use` has the times at which the token was generated and last used. It
 * is null if the user has no token, and undefined until the API has answered. Only the component's state contains the
 * token, so leaving the page drops it.
 */
export function usePersonalToken() {
  const api = useApi();
  const [token, setToken] = useState<PersonalToken>();
  const [isOpen, setOpen] = useState(false);
  const { data: use } = useQuery(personalTokenOptions(api));
  const { refresh, andRead } = useRefresh(personalTokenOptions(api).queryKey);
  const { mutate, reset, error, isPending } = useMutation({
    mutationFn: (read: typeof viewToken) => read(api),
    onSuccess: (read) => setToken(read),
    // Drops the error if another tab has deleted or generated the token, because `onSettled` reads the token's state
    // again.
    onError: (failure) => {
      const code = apiErrorOf(failure)?.code;
      if (code === "not_found" || code === "token_exists") reset();
      if (code === "token_exists") setOpen(false);
    },
    onSettled: refresh,
  });
  return {
    token,
    use,
    error,
    isBusy: isPending,
    isOpen,
    open: () => {
      setOpen(true);
      if (use !== null) mutate(viewToken);
    },
    generate: () => mutate(generateToken),
    regenerate: async () => setToken(await answerOf(api.account["api-token"].regenerate.post())),
    remove: async () => {
      await andRead(answerOf(api.account["api-token"].delete()));
      setToken(undefined);
      setOpen(false);
    },
  };
}

const viewToken = (api: ApiClient) => answerOf(api.account["api-token"].get());
const generateToken = (api: ApiClient) => answerOf(api.account["api-token"].post());

type PersonalToken = Awaited<ReturnType<typeof viewToken>>;
