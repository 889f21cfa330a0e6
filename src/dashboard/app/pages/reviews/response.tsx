import { Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { fieldError } from "../../ui/explain.ts";
import { FormError } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { Time } from "../../ui/time.tsx";
import { number } from "../../ui/words.ts";
import { useNames, useShowReview, type Review } from "./data.ts";

const MAX_CHARS = 10_000;

/** The response as it is, or the place to write it. */
export function Response({ review, source }: { readonly review: Review; readonly source: string }) {
  const [isEditing, setEditing] = useState(false);
  const { response, removed_at: removedAt } = review;
  if (response === null && removedAt !== null)
    return <Text c="dimmed">Nobody responded before the review was removed.</Text>;
  if (response === null || isEditing)
    return (
      <Editor
        review={review}
        source={source}
        onClose={response === null ? undefined : () => setEditing(false)}
      />
    );
  return <Given review={review} onEdit={() => setEditing(true)} />;
}

interface GivenProps {
  readonly review: Review;
  readonly onEdit: () => void;
}

function Given({ review, onEdit }: GivenProps) {
  const api = useApi();
  const names = useNames();
  const show = useShowReview();
  const [isAsking, setAsking] = useState(false);
  const { response } = review;
  if (response === null) return null;
  const remove = async () => {
    show(
      await api.call("DELETE", "/account/reviews/:id/response", {
        params: { id: String(review.id) },
      }),
    );
    notify.done("The response is deleted.");
  };
  return (
    <Stack gap="sm">
      <Text className="as-written">{response.body}</Text>
      <Text size="sm" c="dimmed">
        {response.user_id === null ? "Written on the site" : names.user(response.user_id)},{" "}
        <Time at={response.responded_at} />
      </Text>
      <Group gap="xs">
        {review.removed_at === null && (
          <Button variant="default" onClick={onEdit}>
            Change response
          </Button>
        )}
        <Button variant="subtle" color="red" onClick={() => setAsking(true)}>
          Delete response
        </Button>
      </Group>
      <Confirm
        opened={isAsking}
        onClose={() => setAsking(false)}
        title="Delete the response?"
        action="Delete"
        danger
        onConfirm={remove}
      >
        The review is then without a response again. Its text stays in the history of this review,
        where only your colleagues see it.
      </Confirm>
    </Stack>
  );
}

interface EditorProps {
  readonly review: Review;
  readonly source: string;
  /** Where there is a response to go back to. */
  readonly onClose: (() => void) | undefined;
}

function Editor({ review, source, onClose }: EditorProps) {
  const api = useApi();
  const show = useShowReview();
  const isFirst = onClose === undefined;
  const [body, setBody] = useState(review.response?.body ?? "");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    // Somebody pressed "Change response": the text is what they want to reach.
    if (!isFirst) field.current?.focus();
  }, [isFirst]);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      api.call("POST", "/account/reviews/:id/response", {
        params: { id: String(review.id) },
        body: { body: body.trim() },
      }),
    onSuccess: (answer) => {
      show(answer);
      notify.done(isFirst ? "The response is on its way." : "The response is changed.");
      onClose?.();
    },
  });
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        mutate();
      }}
    >
      <Stack gap="sm">
        <Textarea
          ref={field}
          label="Your response"
          description={`Everybody can read it on ${source}.`}
          autosize
          minRows={4}
          maxRows={16}
          maxLength={MAX_CHARS}
          value={body}
          error={fieldError(error, "body")}
          onChange={(event) => setBody(event.currentTarget.value)}
        />
        <FormError error={error} fields={["body"]} />
        <Group gap="xs">
          <Button type="submit" loading={isPending} disabled={body.trim() === ""}>
            {isFirst ? "Send response" : "Save response"}
          </Button>
          {!isFirst && (
            <Button variant="default" onClick={onClose} disabled={isPending}>
              Cancel
            </Button>
          )}
          <Text size="sm" c="dimmed">
            {number(body.length)} of {number(MAX_CHARS)}
          </Text>
        </Group>
      </Stack>
    </form>
  );
}
