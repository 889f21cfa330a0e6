import { Alert, Button, Group, Loader, Stack, Text } from "@mantine/core";
import { type QueryKey, useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

import { answerOf, type ApiClient, apiErrorOf } from "../../api/client.ts";
import { BASE_URL } from "../../api/connect.ts";
import { useSessionState } from "../../session/session.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed } from "../../ui/layout.tsx";
import { useRefresh } from "../../ui/pages.ts";
import { SecretField } from "../../ui/secret.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { ExactTime, LastUsed } from "../../ui/time.tsx";

const TOKEN_EXAMPLE = `curl -H "Authorization: Bearer $TOKEN" ${BASE_URL}/verify-token`;

type ShownToken = Awaited<ReturnType<ReturnType<typeof ownTokenRequests>["view"]>>;

/** Requests for a token that stays viewable: that of the user, or that of an integration (contract 4.18 and 10.10). */
interface TokenRequests {
  readonly view: () => Promise<ShownToken>;
  readonly generate: () => Promise<ShownToken>;
  readonly regenerate: () => Promise<ShownToken>;
  readonly remove: () => Promise<unknown>;
}

export function ownTokenRequests(api: ApiClient) {
  const own = api.account["api-token"];
  return {
    view: () => answerOf(own.get()),
    generate: () => answerOf(own.post()),
    regenerate: () => answerOf(own.regenerate.post()),
    remove: () => answerOf(own.delete()),
  };
}

export function integrationTokenRequests(api: ApiClient, id: number): TokenRequests {
  const own = api.partner.integrations({ id })["api-token"];
  return {
    view: () => answerOf(own.get()),
    generate: () => answerOf(own.post()),
    regenerate: () => answerOf(own.regenerate.post()),
    remove: () => answerOf(own.delete()),
  };
}

/** Data about a token that do not reveal it, so that reading them is not recorded in the audit log. */
type TokenUse = Pick<ShownToken, "created_at" | "last_used_at">;

interface ShownTokenOptions {
  readonly requests: TokenRequests;
  /** Null if there is no token, and undefined until the API has answered. */
  readonly use: TokenUse | null | undefined;
  /** Key of the cached data that contain `use`. */
  readonly queryKey: QueryKey;
  /** Called after the token was deleted. */
  readonly onClose: () => void;
}

/**
 * State of a token that is read on request, because the API writes each read into the audit log. `token` is undefined
 * before it was read. Only the component's state contains it, so leaving the page drops it.
 */
export function useShownToken({ requests, use, queryKey, onClose }: ShownTokenOptions) {
  const [token, setToken] = useState<ShownToken>();
  const { refresh, andRead } = useRefresh(queryKey);
  const { mutate, mutateAsync, reset, error, isPending } = useMutation({
    mutationFn: (read: () => Promise<ShownToken>) => read(),
    onSuccess: (read) => setToken(read),
    onError: (failure) => {
      // Another tab has deleted or generated the token.
      const code = apiErrorOf(failure)?.code;
      if (code === "not_found" || code === "token_exists") reset();
    },
    onSettled: refresh,
  });
  return {
    token,
    use: token ?? use,
    error,
    isBusy: isPending,
    /** Reads the token. Returns undefined if that fails; `error` then tells why. */
    read: () =>
      mutateAsync(requests.view).then(
        (read) => read.token,
        () => undefined,
      ),
    generate: () => mutate(requests.generate),
    regenerate: async () => setToken(await requests.regenerate()),
    remove: async () => {
      await andRead(requests.remove());
      setToken(undefined);
      onClose();
    },
  };
}

interface TokenPanelProps {
  readonly state: ReturnType<typeof useShownToken>;
  /** Says what the token may do, above the button that generates it. */
  readonly warning: ReactNode;
}

/** Shows a token with what the user can do with it, or a button that generates it. */
export function TokenPanel({ state, warning }: TokenPanelProps) {
  const { use, error, isBusy, generate } = state;
  if (apiErrorOf(error)?.code === "forbidden") return <SignInAgain />;
  if (use === undefined) return <Loader type="dots" aria-label="Loading" />;
  if (use !== null) return <Token use={use} state={state} />;
  return (
    <Stack align="flex-start">
      {warning}
      {error !== null && <ErrorNotice error={error} />}
      <Button loading={isBusy} onClick={generate} data-autofocus>
        Generate token
      </Button>
    </Stack>
  );
}

interface TokenProps {
  readonly use: TokenUse;
  readonly state: TokenPanelProps["state"];
}

function Token({ use, state }: TokenProps) {
  const { token, error, read } = state;
  return (
    <Stack>
      {/* A token of another time is another secret, which begins hidden. */}
      <SecretField key={use.created_at} label="Token" value={token?.token} read={read} />
      {error !== null && <ErrorNotice error={error} />}
      <Group justify="space-between" gap="sm">
        <Dimmed size="sm">
          Generated <ExactTime at={use.created_at} />. Last used: <LastUsed at={use.last_used_at} />
        </Dimmed>
        <Group gap="xs">
          <ConfirmedAction
            label="Regenerate"
            button={{ size: "xs" }}
            title="Regenerate the token?"
            action="Regenerate"
            danger
            onConfirm={state.regenerate}
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
            onConfirm={state.remove}
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
 * Explains a 403 on the user's own token: the role may have one, but the user signed in by a method that may not manage
 * it (contract 4.18).
 */
function SignInAgain() {
  const { signOut } = useSessionState();
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
