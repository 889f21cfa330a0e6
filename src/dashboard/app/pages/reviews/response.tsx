import { Dimmed } from "../../ui/layout.tsx";
import { Alert, Button, Group, Stack, Text, Textarea } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useSearchParams } from "wouter";

import { ConfirmedAction } from "../../ui/dialog.tsx";
import { Tag } from "../../ui/badges.tsx";
import { Form, SubmitButton, useForm } from "../../ui/form.tsx";
import { number } from "../../ui/format.ts";
import { Icon } from "../../ui/icon.tsx";
import { Time } from "../../ui/time.tsx";
import { useNames, useReviewActions, type Review, type ReviewWithHistory } from "./data.ts";
import { postingOf } from "./history.ts";
import css from "./review.module.css";

const MAX_CHARS = 10_000;

/** Properties of a component that changes a review at its site. */
export interface ReviewAtSiteProps {
  readonly review: Review;
  /** Name of the review site that published the review. */
  readonly source: string;
}

interface ResponseProps {
  readonly review: ReviewWithHistory;
  /** Name of the review site that published the review. */
  readonly source: string;
}

/** Shows the response to a review, or the form to write a response. */
export function Response({ review, source }: ResponseProps) {
  const [isEditing, setEditing] = useState(false);
  const { response, removed_at: removedAt } = review;
  if (response === null && removedAt !== null)
    return <Text c="dimmed">The review was removed before anyone responded.</Text>;
  if (response === null)
    return <ResponseForm review={review} source={source} onClose={undefined} />;
  if (isEditing)
    return <ResponseForm review={review} source={source} onClose={() => setEditing(false)} />;
  const edit = () => setEditing(true);
  return <ResponseText review={review} source={source} response={response} onEdit={edit} />;
}

interface ResponseTextProps extends ResponseProps {
  readonly response: NonNullable<Review["response"]>;
  readonly onEdit: () => void;
}

function ResponseText({ review, source, response, onEdit }: ResponseTextProps) {
  const names = useNames();
  const { deleteResponse } = useReviewActions(review.id);
  return (
    <Stack gap="sm">
      {review.removed_at === null && <PostingState review={review} source={source} />}
      <Text className={css.asWritten}>{response.body}</Text>
      <Dimmed size="sm">
        {response.user_id === null ? "Written on the site" : names.user(response.user_id)},{" "}
        <Time at={response.responded_at} />
      </Dimmed>
      <Group gap="xs">
        {review.removed_at === null && (
          <Button variant="default" onClick={onEdit}>
            Change response
          </Button>
        )}
        <ConfirmedAction
          label="Delete response"
          button={{ variant: "subtle", color: "red" }}
          title="Delete the response?"
          action="Delete"
          danger
          onConfirm={deleteResponse}
          done="Response deleted."
        >
          The response is removed from the review. Its text stays in the history of the review,
          which only your colleagues can see.
        </ConfirmedAction>
      </Group>
    </Stack>
  );
}

/** Shows whether the review site has published the response, and if it refused it, why and what to do. */
function PostingState({ review, source }: ResponseProps) {
  const posting = postingOf(review.history);
  if (posting.state !== "rejected")
    return (
      <div>
        <Tag color={posting.state === "published" ? "teal" : "blue"}>
          {posting.state === "published" ? "Published on" : "On its way to"} {source}
        </Tag>
      </div>
    );
  return (
    <Alert
      color="red"
      icon={<Icon name="alert" />}
      title={`${source} did not publish this response`}
    >
      {posting.reason}
    </Alert>
  );
}

interface ResponseFormProps extends ReviewAtSiteProps {
  /** Closes the form and shows the existing response again; undefined if the review has no response yet. */
  readonly onClose: (() => void) | undefined;
}

function ResponseForm({ review, source, onClose }: ResponseFormProps) {
  const { respond } = useReviewActions(review.id);
  const isFirst = onClose === undefined;
  const field = useRef<HTMLTextAreaElement>(null);
  const [params] = useSearchParams();
  const isOpenedByUser = !isFirst || params.has("respond");
  useEffect(() => {
    // Focuses the text field only if the user opened the form by "Respond" or "Change response".
    if (isOpenedByUser) field.current?.focus();
  }, [isOpenedByUser]);
  const form = useForm({
    name: `review:${review.id}:response`,
    initial: { body: review.response?.body ?? "" },
    send: ({ body }) => respond(body),
    done: isFirst ? `Your response is on its way to ${source}.` : "Response changed.",
    onDone: () => onClose?.(),
  });
  const { body } = form.draft;
  const cancel = () => {
    form.reset();
    onClose?.();
  };
  return (
    <Form
      form={form}
      gap="sm"
      buttons={
        <Group gap="xs">
          <SubmitButton form={form} isReady={body.trim() !== ""}>
            {isFirst ? "Send response" : "Save response"}
          </SubmitButton>
          {!isFirst && (
            <Button variant="default" onClick={cancel} disabled={form.isBusy}>
              Cancel
            </Button>
          )}
          <Dimmed size="sm">
            {number(body.length)} of {number(MAX_CHARS)}
          </Dimmed>
        </Group>
      }
    >
      <Textarea
        ref={field}
        label="Your response"
        description={`Public: everyone can read it on ${source}.`}
        autosize
        minRows={4}
        maxRows={16}
        maxLength={MAX_CHARS}
        {...form.text("body")}
      />
    </Form>
  );
}
