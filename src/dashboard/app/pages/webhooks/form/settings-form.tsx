import { Box, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { type ReactNode, useRef } from "react";

import { Tag } from "../../../ui/badges.tsx";
import { Form, type FormState, SubmitButton, useForm } from "../../../ui/form.tsx";
import { counted } from "../../../ui/format.ts";
import { Dimmed } from "../../../ui/layout.tsx";
import { ErrorNotice } from "../../../ui/states.tsx";
import { changesOf, type Draft, draftOf, hasMoved } from "../data/draft.ts";
import type { SubscriptionProps } from "../data/reads.ts";
import { useSubscriptionActions } from "../data/use-subscription-actions.ts";
import css from "./form.module.css";

/** Returns the id of a section with this title, to which the index of the settings links. */
export const targetOf = (title: string): string =>
  `settings-${title.toLowerCase().replaceAll(" ", "-")}`;

interface SettingsFormProps extends SubscriptionProps {
  readonly title: string;
  readonly description?: ReactNode;
  /** Sentence that says when a saved change takes effect. */
  readonly effect: string;
  /** Returns what the user must still enter; undefined if the draft can be sent. */
  readonly missing?: (draft: Draft) => string | undefined;
  /** True if the section has nothing to change. */
  readonly isFixed?: boolean;
  /** Called after a change of the URL was saved. */
  readonly onMoved?: () => void;
  readonly children: (form: FormState<Draft>) => ReactNode;
}

/**
 * Section of the settings with a form of its own. Fields that the user has not edited show changes that other users
 * save.
 */
export function SettingsForm(props: SettingsFormProps) {
  const { subscription, title, effect, missing, isFixed = false, onMoved } = props;
  const { update } = useSubscriptionActions(subscription.id);
  const section = useRef<HTMLElement>(null);
  const form = useForm({
    name: `subscription:${subscription.id}:${title}`,
    secrets: ["headers"],
    initial: draftOf(subscription),
    // Headers that the user has entered for another URL are not sent without it.
    alongside: ({ webhook_url: url }) =>
      url?.trim() === subscription.webhook_url ? { headers: undefined } : {},
    send: async (draft) => {
      await update(draft, subscription);
      return hasMoved(draft, subscription);
    },
    done: "Saved.",
    onDone: (wasMoved, edits) => {
      edits.reset();
      // Keeps the focus in the section, because the button that has it is disabled until the next change.
      section.current?.focus({ preventScroll: true });
      if (wasMoved) onMoved?.();
    },
  });
  const changes = Object.keys(changesOf(form.draft, subscription)).length;
  const id = targetOf(title);
  const fields = (
    <Stack p={{ base: "md", sm: "lg" }}>
      <SectionTitle id={`${id}-title`} description={props.description} isChanged={changes > 0}>
        {title}
      </SectionTitle>
      {props.children(form)}
    </Stack>
  );
  const bar = (
    <div className={css.bar}>
      <Dimmed size="sm">{effect}</Dimmed>
      <Group gap="xs">
        {changes > 0 && (
          <Button size="xs" variant="default" onClick={() => form.reset()}>
            Discard
          </Button>
        )}
        <SubmitButton
          form={form}
          size="xs"
          isReady={changes > 0}
          missing={changes > 0 ? missing?.(form.draft) : undefined}
        >
          {changes === 0 ? "Save" : `Save ${counted(changes, "change")}`}
        </SubmitButton>
      </Group>
    </div>
  );
  return (
    <Paper
      withBorder
      component="section"
      id={id}
      className="section"
      aria-labelledby={`${id}-title`}
      ref={section}
      tabIndex={-1}
    >
      {isFixed ? (
        fields
      ) : (
        <Form
          form={form}
          gap={0}
          buttons={bar}
          renderError={(error) => (
            <Box px="lg" pb="lg">
              <ErrorNotice error={error} />
            </Box>
          )}
        >
          {fields}
        </Form>
      )}
    </Paper>
  );
}

interface SectionTitleProps {
  readonly id: string;
  readonly description: ReactNode;
  readonly isChanged: boolean;
  readonly children: string;
}

function SectionTitle({ id, description, isChanged, children }: SectionTitleProps) {
  return (
    <div className="section-words">
      <Group gap="xs">
        <Title order={2} size="h4" id={id}>
          {children}
        </Title>
        {isChanged && <Tag color="yellow">Not saved</Tag>}
      </Group>
      {description !== undefined && (
        <Text c="dimmed" size="sm" component="div" maw={640} mt={4}>
          {description}
        </Text>
      )}
    </div>
  );
}
