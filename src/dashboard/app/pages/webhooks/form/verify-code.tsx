import { Text } from "@mantine/core";
import type { QueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { VERIFY_SNIPPETS } from "../../../api/verify-snippets.ts";
import css from "../../../ui/copy.module.css";
import { CodeBlock } from "../../../ui/copy.tsx";
import { GuideLink, PageTabs } from "../../../ui/layout.tsx";
import { SecretOnRequest } from "../../../ui/secret.tsx";
import { type Secrets, useSubscriptionActions } from "../data/use-subscription-actions.ts";

export function VerifyCode() {
  return (
    <div>
      <Text size="sm" mb="xs">
        Compute the signature of the body exactly as it arrived, before you parse it. A request is
        genuine if <code>X-SVC-Signature</code> matches, or <code>X-SVC-Signature-Previous</code>,
        which is sent during a rotation of the secret. Otherwise return 401.{" "}
        <GuideLink guide="verifying">Guide</GuideLink>
      </Text>
      <PageTabs
        tabs={Object.fromEntries(
          VERIFY_SNIPPETS.map(({ language, file, code }) => [
            language,
            {
              title: language,
              content: (
                <CodeBlock label={file} code={code.trim()} shown={sourceParts(code.trim())} wraps />
              ),
            },
          ]),
        )}
      />
    </div>
  );
}

/** Matches the comments, texts and frequent keywords of the languages of the samples. */
const SOURCE_TOKEN =
  /((?<=^|\s)#(?!!?\[).*|(?<=^|\s)\/\/.*|\/\*[^]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\b(?:class|const|def|else|end|export|false|final|for|from|func|function|if|import|in|let|new|nil|null|package|private|public|return|static|throws|true|type|var)\b)/gm;

/** Divides source code into its text, with an element around each comment, text and keyword. */
function sourceParts(code: string): ReactNode[] {
  // `split` puts what the pattern matches at the odd places.
  return code.split(SOURCE_TOKEN).map((part, i) =>
    i % 2 === 0 ? (
      part
    ) : (
      <span key={i} className={kindOf(part)}>
        {part}
      </span>
    ),
  );
}

function kindOf(part: string): string | undefined {
  if (/^["'`]/.test(part)) return css.text;
  return /^[#/]/.test(part) ? css.comment : css.name;
}

interface SecretProps {
  /** Id of the webhook subscription. */
  readonly id: string;
  /** Signing secret that was just created or rotated; undefined otherwise. */
  readonly fresh?: Secrets | undefined;
  readonly label?: string;
}

/**
 * Shows the signing secret. For a subscription with the headers of Standard Webhooks, also shows the form of the
 * secret that Standard Webhooks libraries accept.
 */
export function SigningSecret({ id, fresh, label = "Secret" }: SecretProps) {
  const { readSecret } = useSubscriptionActions(id);
  const byLabel = ({ secret, standard_webhooks_secret: standard }: Secrets) => ({
    [label]: secret,
    ...(standard !== null && { [`${label} for Standard Webhooks`]: standard }),
  });
  return (
    <SecretOnRequest
      fresh={fresh && byLabel(fresh)}
      read={async () => byLabel(await readSecret())}
    />
  );
}

const keyOf = (id: string) => ["webhooks", "fresh-secret", id];

/**
 * Stores a new signing secret in the memory of the page until the page shows it. A reload or a sign-out drops
 * the secret.
 */
export function keepSecrets(client: QueryClient, id: string, secrets: Secrets): void {
  client.setQueryData(keyOf(id), secrets);
}

export function freshSecrets(client: QueryClient, id: string): Secrets | undefined {
  return client.getQueryData<Secrets>(keyOf(id));
}
