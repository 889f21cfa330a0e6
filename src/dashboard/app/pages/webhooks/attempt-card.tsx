import { Alert, Group, Paper, SimpleGrid, Stack, Text, Title } from "@mantine/core";
import { useState } from "react";

import { Icon } from "../../ui/icon.tsx";
import { ExactTime } from "../../ui/time.tsx";
import { milliseconds } from "../../ui/words.ts";
import { ATTEMPTS } from "./attempt-line.tsx";
import { OUTCOME_WORDS } from "./attempt-words.ts";
import type { Attempt } from "./model.ts";
import { findingOf } from "./faults.ts";
import { Exchanged } from "./exchanged.tsx";

/** One attempt: what it came to at a glance, and on request all that went over the line. */
export function AttemptCard({
  attempt,
  isOpen: isOpenFirst,
}: {
  readonly attempt: Attempt;
  readonly isOpen: boolean;
}) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const { title, advice } = findingOf(attempt);
  const { outcome, round } = attempt;
  return (
    <Paper withBorder component="li" p="md" className="timeline-item" data-outcome={outcome}>
      <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
        {/* Its label is the text in it. */}
        {/* oxlint-disable-next-line jsx-a11y/control-has-associated-label */}
        <summary>
          <Group component="span" gap="sm" justify="space-between">
            <Text span fw={650}>
              Attempt {attempt.attempt} of {ATTEMPTS}
              {round > 1 && `, round ${round}`}
            </Text>
            <span className="outcome" data-outcome={outcome}>
              {OUTCOME_WORDS[outcome]}
            </span>
            <Text span size="sm" c="dimmed" className="figures">
              <ExactTime at={attempt.started_at} /> · {milliseconds(attempt.duration_ms)}
            </Text>
          </Group>
        </summary>
        {isOpen && (
          <Stack mt="md" gap="md">
            {advice !== "" && (
              <Alert
                color={outcome === "interrupted" ? "gray" : "red"}
                icon={<Icon name="alert" />}
                title={title}
                role="note"
              >
                {advice}
              </Alert>
            )}
            <SimpleGrid cols={{ base: 1, lg: 2 }} spacing="lg">
              <div className="shrinks">
                <Title order={3} size="h5" mb="xs">
                  Request
                </Title>
                <Exchanged
                  name="Request"
                  headers={attempt.request_headers}
                  body={attempt.request_body}
                />
              </div>
              <div className="shrinks">
                <Title order={3} size="h5" mb="xs">
                  Response{attempt.status_code !== null && ` ${attempt.status_code}`}
                </Title>
                <Response attempt={attempt} />
              </div>
            </SimpleGrid>
          </Stack>
        )}
      </details>
    </Paper>
  );
}

function Response({ attempt }: { readonly attempt: Attempt }) {
  const { response_headers: headers, response_excerpt: excerpt } = attempt;
  if (headers === null)
    return (
      <Text size="sm" c="dimmed">
        There was none: {findingOf(attempt).title.toLowerCase()}.
      </Text>
    );
  return (
    <>
      <Exchanged name="Response" headers={headers} body={excerpt ?? ""} />
      {attempt.response_truncated && (
        <Text size="xs" c="dimmed" mt={4}>
          The body was longer: only its beginning is kept.
        </Text>
      )}
    </>
  );
}
