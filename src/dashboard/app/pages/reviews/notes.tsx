import { Group, Textarea } from "@mantine/core";

import { Form, SubmitButton } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { useForm } from "../../ui/use-form.ts";
import { useReviewActions, type Review } from "./data.ts";

const MAX_CHARS = 10_000;

export function Notes({ review }: { readonly review: Review }) {
  const { addNote } = useReviewActions(review.id);
  const form = useForm({
    name: `review:${review.id}:note`,
    initial: { body: "" },
    names: { body: "body" },
    send: ({ body }) => addNote(body),
    onDone: (_, changes) => {
      changes.reset();
      notify.done("The note is added.");
    },
  });
  return (
    <Form
      form={form}
      gap="xs"
      buttons={
        <Group>
          <SubmitButton form={form} variant="default" isReady={form.draft.body.trim() !== ""}>
            Add note
          </SubmitButton>
        </Group>
      }
    >
      <Textarea
        label="Add a note"
        description="For your colleagues only; the reviewer never sees it."
        autosize
        minRows={2}
        maxRows={10}
        maxLength={MAX_CHARS}
        {...form.text("body")}
      />
    </Form>
  );
}
