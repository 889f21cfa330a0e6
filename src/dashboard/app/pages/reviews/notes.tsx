import { Button, Group, Stack, Textarea } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { fieldError } from "../../ui/explain.ts";
import { FormError } from "../../ui/form.tsx";
import { notify } from "../../ui/notify.ts";
import { useShowReview, type Review } from "./data.ts";

const MAX_CHARS = 10_000;

export function Notes({ review }: { readonly review: Review }) {
  const api = useApi();
  const show = useShowReview();
  const [body, setBody] = useState("");
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      api.call("POST", "/account/reviews/:id/notes", {
        params: { id: String(review.id) },
        body: { body: body.trim() },
      }),
    onSuccess: (answer) => {
      setBody("");
      show(answer);
      notify.done("The note is added.");
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
      <Stack gap="xs" mb="lg">
        <Textarea
          label="Add a note"
          description="For your colleagues only; the reviewer never sees it."
          autosize
          minRows={2}
          maxRows={10}
          maxLength={MAX_CHARS}
          value={body}
          error={fieldError(error, "body")}
          onChange={(event) => setBody(event.currentTarget.value)}
        />
        <FormError error={error} fields={["body"]} />
        <Group>
          <Button type="submit" variant="default" loading={isPending} disabled={body.trim() === ""}>
            Add note
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
