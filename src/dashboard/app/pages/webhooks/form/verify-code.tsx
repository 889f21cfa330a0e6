import { Anchor, Button, Stack, Tabs, Text } from "@mantine/core";
import { type QueryClient, useMutation } from "@tanstack/react-query";

import { VERIFY_SNIPPETS } from "../../../api/verify-snippets.ts";
import { CodeBlock, SecretField } from "../../../ui/copy.tsx";
import { ErrorNotice } from "../../../ui/states.tsx";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";

export function VerifyCode() {
  return (
    <div>
      <Text size="sm" mb="xs">
        Check <code>X-SVC-Signature</code> over the body exactly as it arrived, before parsing it.
        Answer 401 if it does not fit. The guide{" "}
        <Anchor href="/docs/verifying" target="_blank" inherit underline="always">
          Verifying
        </Anchor>{" "}
        says more.
      </Text>
      <Tabs defaultValue={VERIFY_SNIPPETS[0]?.language ?? ""} keepMounted={false}>
        <Tabs.List>
          {VERIFY_SNIPPETS.map(({ language }) => (
            <Tabs.Tab key={language} value={language}>
              {language}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {VERIFY_SNIPPETS.map(({ language, file, code }) => (
          <Tabs.Panel key={language} value={language} pt="xs">
            <CodeBlock label={file} code={code.trim()} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  );
}

interface SecretProps {
  readonly id: string;
  /** Signing secret that was just created; absent otherwise. */
  readonly fresh?: string;
}

/**
 * Shows the signing secret: immediately after its creation, otherwise on request, because the API writes each
 * read into the audit log.
 */
export function Secret({ id, fresh }: SecretProps) {
  const { readSecret } = useSubscriptionActions(id);
  const { data: secret = fresh, mutate, error } = useMutation({ mutationFn: readSecret });
  if (secret !== undefined)
    return (
      <div className="takes-line">
        <SecretField label="Secret" value={secret} />
      </div>
    );
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={() => mutate()}>
        Get the secret
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  );
}

const keyOf = (id: string) => ["webhooks", "fresh-secret", id];

/**
 * Stores a new signing secret in the memory of the page until the page shows it. A reload or a sign-out drops
 * the secret.
 */
export function keepSecret(client: QueryClient, id: string, secret: string): void {
  client.setQueryData(keyOf(id), secret);
}

export function freshSecret(client: QueryClient, id: string): string | undefined {
  return client.getQueryData<string>(keyOf(id));
}
