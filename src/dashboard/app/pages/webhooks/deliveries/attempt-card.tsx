import { Alert, Paper, SimpleGrid, Stack, Switch, Text, Title } from "@mantine/core";
import { type ReactNode, useState } from "react";

import { CodeBlock, CopyTextButton } from "../../../ui/copy.tsx";
import { inLines, milliseconds } from "../../../ui/format.ts";
import { Icon } from "../../../ui/icon.tsx";
import { Facts, Dimmed } from "../../../ui/layout.tsx";
import { ExactTime } from "../../../ui/time.tsx";
import {
  asCurl,
  ATTEMPTS,
  diagnosisOf,
  type Headers,
  HIDDEN,
  OUTCOME_WORDS,
  phraseOf,
} from "./attempt-words.ts";
import type { Attempt } from "../data/reads.ts";
import css from "./deliveries.module.css";

interface AttemptProps {
  readonly attempt: Attempt;
}

interface RequestProps extends AttemptProps {
  /** Current webhook URL of the subscription; undefined while the subscription loads. */
  readonly url: string | undefined;
}

interface AttemptCardProps extends RequestProps {
  readonly isOpenAtFirst: boolean;
}

/** Shows the result of a delivery attempt, and on request its complete request and response. */
export function AttemptCard({ attempt, url, isOpenAtFirst }: AttemptCardProps) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <Paper
      withBorder
      component="li"
      p="md"
      className={css.timelineItem}
      data-outcome={attempt.outcome}
    >
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Glance attempt={attempt} />
        </summary>
        {isOpen && (
          <Stack mt="md" gap="md">
            <Advice attempt={attempt} />
            <SimpleGrid type="container" cols={{ base: 1, "760px": 2 }} spacing="lg">
              <Request attempt={attempt} url={url} />
              <Response attempt={attempt} />
            </SimpleGrid>
          </Stack>
        )}
      </details>
    </Paper>
  );
}

function Glance({ attempt }: AttemptProps) {
  const { outcome, round } = attempt;
  // A 410, and any failure of a test that decides whether a subscription is enabled, ends the round early.
  const isLast = outcome === "failed" && attempt.attempt < ATTEMPTS;
  return (
    <span className={css.attemptGlance}>
      <Text span fw={650}>
        Attempt {attempt.attempt}
        {!isLast && ` of ${ATTEMPTS}`}
        {round > 1 && `, round ${round}`}
      </Text>
      <span className="outcome" data-outcome={outcome}>
        {OUTCOME_WORDS[outcome]}
        <span className="finding"> · {diagnosisOf(attempt).title}</span>
      </span>
      <Text span size="sm" c="dimmed" className="tabular">
        <ExactTime at={attempt.started_at} /> · {milliseconds(attempt.duration_ms)}
      </Text>
    </span>
  );
}

function Advice({ attempt }: AttemptProps) {
  const { title, advice } = diagnosisOf(attempt);
  if (advice === "") return null;
  return (
    <Alert
      color={attempt.outcome === "interrupted" ? "gray" : "red"}
      icon={<Icon name="alert" />}
      title={title}
      role="note"
    >
      {advice}
    </Alert>
  );
}

function Request({ attempt, url }: RequestProps) {
  const { request_headers: headers, request_body: body } = attempt;
  return (
    <Direction title="Request">
      {headers === null || body === null ? (
        <Dimmed size="sm">
          {attempt.request_erased
            ? "The body was erased because it named a person whose data was erased."
            : "The exact request can no longer be reproduced, so it is not shown."}
          {attempt.request_digest !== null && ` Its SHA-256 begins with ${attempt.request_digest}.`}
        </Dimmed>
      ) : (
        <>
          <HttpMessage name="Request" headers={headers} body={body} />
          <CopyTextButton
            value={url === undefined ? "" : asCurl(url, headers, body)}
            disabled={url === undefined}
            mt="xs"
            size="xs"
            variant="default"
          >
            Copy as cURL
          </CopyTextButton>
        </>
      )}
      {(attempt.possibly_repeated || attempt.resent) && (
        <Dimmed mt={4}>
          {attempt.resent
            ? "The request was sent twice because the connection closed without a response."
            : "The request may be a duplicate because one of our processes stopped at that time."}
        </Dimmed>
      )}
    </Direction>
  );
}

function Response({ attempt }: AttemptProps) {
  const { status_code: status, response_headers: headers, response_excerpt: excerpt } = attempt;
  return (
    <Direction title={status === null ? "Response" : `Response ${status}`}>
      {headers === null ? (
        <Dimmed size="sm">
          {status === null
            ? `No response: ${phraseOf(attempt)}.`
            : "The response was erased together with the data of a person."}
        </Dimmed>
      ) : (
        <HttpMessage name="Response" headers={headers} body={excerpt ?? ""} />
      )}
      {headers !== null && attempt.response_truncated && (
        <Dimmed mt={4}>Only the beginning of the body is stored.</Dimmed>
      )}
    </Direction>
  );
}

function Direction({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="shrinks">
      <Title order={3} size="h5" mb="xs">
        {title}
      </Title>
      {children}
    </div>
  );
}

interface HttpMessageProps {
  /** Which of the two HTTP messages is shown: `Request` or `Response`. */
  readonly name: string;
  readonly headers: Headers;
  readonly body: string;
}

/** Shows headers and body of an HTTP message as text. A JSON body is indented unless the user asks for the raw body. */
function HttpMessage({ name, headers, body }: HttpMessageProps) {
  return (
    <Stack gap="sm">
      <Facts
        facts={Object.entries(headers).map(([header, value]) => [
          header,
          value === HIDDEN ? (
            <Dimmed key={header} size="sm">
              Your own header. Its value is not shown.
            </Dimmed>
          ) : (
            <span key={header} className="mono">
              {typeof value === "string" ? value : value.join(", ")}
            </span>
          ),
        ])}
      />
      {body === "" ? (
        <Dimmed size="sm">The body was empty.</Dimmed>
      ) : (
        <Body name={name} body={body} />
      )}
    </Stack>
  );
}

function Body({ name, body }: Pick<HttpMessageProps, "name" | "body">) {
  const [isLaidOut, setLaidOut] = useState(true);
  const pretty = inLines(body);
  const shown = isLaidOut ? (pretty ?? body) : body;
  return (
    <>
      {pretty !== undefined && (
        <Switch
          size="xs"
          label="Format JSON"
          checked={isLaidOut}
          onChange={(event) => setLaidOut(event.currentTarget.checked)}
        />
      )}
      <CodeBlock
        label={`${name} body`}
        code={shown}
        copied={body}
        wraps
        isJson={pretty !== undefined}
      />
    </>
  );
}
