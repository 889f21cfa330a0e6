import {
  Alert,
  Button,
  Checkbox,
  Group,
  SimpleGrid,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { Choice, Form, type FormState, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { LinkButton } from "../../ui/layout.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import { findByEmail } from "../users/data.ts";
import { useErase } from "./data.ts";
import { type ErasureDraft, namesPerson, newErasure } from "./erasure-draft.ts";
import { UserSelect } from "./user-select.tsx";

interface EraseFormProps {
  /** User whom the form proposes. */
  readonly userId?: number | undefined;
  readonly onClose: () => void;
}

/** Form that erases a person. It names what will happen, and is sent only after the operator has confirmed it. */
export function EraseForm({ userId, onClose }: EraseFormProps) {
  const form = useForm({
    initial: newErasure(userId),
    send: useErase(),
    done: "The erasure has begun. The list shows its state.",
    onDone: onClose,
  });
  const { draft } = form;
  return (
    <Form
      form={form}
      buttons={
        <Group justify="flex-end" className="dialog-buttons">
          <Button variant="default" onClick={onClose} disabled={form.isBusy}>
            Cancel
          </Button>
          <SubmitButton form={form} color="red" isReady={namesPerson(draft) && draft.isUnderstood}>
            Erase
          </SubmitButton>
        </Group>
      }
    >
      <Choice
        label="Who asks to be erased?"
        value={draft.kind}
        onChange={(kind) => form.edit({ kind, isUnderstood: false })}
        options={[
          { value: "reviewer", label: "A reviewer", description: "Wrote reviews at review sites." },
          { value: "user", label: "A user", description: "Signs in here." },
        ]}
      />
      {draft.kind === "user" ? <UserFields form={form} /> : <ReviewerFields form={form} />}
      <Alert color="red" icon={<Icon name="alert" />} title="What will happen">
        {WHAT_HAPPENS[draft.kind]}
      </Alert>
      <Checkbox
        label="I have checked who asks, and that this cannot be undone."
        checked={draft.isUnderstood}
        onChange={(event) => form.edit({ isUnderstood: event.currentTarget.checked })}
      />
    </Form>
  );
}

const WHAT_HAPPENS = {
  reviewer:
    "All reviews of this person lose name, address, text and response, also in events that are sent later. Rating, times and states stay. Later reports of the review sites do not bring the texts back.",
  user: "The user is signed out everywhere at once and can never sign in again. Name and address are replaced everywhere, also in events and in the audit log. The texts of responses and notes stay.",
} as const;

interface UserWithEmailProps {
  readonly email: string;
  readonly onChoose: (id: number) => void;
}

const TYPING_MS = 400;

/** Tells that a user signs in with the email of the reviewer, because this erasure would leave the user as it is. */
function UserWithEmail({ email, onChoose }: UserWithEmailProps) {
  const api = useApi();
  const [typed] = useDebouncedValue(email, TYPING_MS);
  const { data: user } = useQuery({
    queryKey: ["users", "of email", typed],
    queryFn: async () => (await findByEmail(api, typed)) ?? null,
    enabled: typed.includes("@"),
  });
  if (!user || typed !== email) return null;
  return (
    <Text size="sm" component="output" display="block">
      {user.name} of {user.company.name} signs in with this email.{" "}
      <LinkButton onClick={() => onChoose(user.id)}>Erase the user instead</LinkButton>, or both,
      one after the other.
    </Text>
  );
}

interface FieldsProps {
  readonly form: FormState<ErasureDraft>;
}

function UserFields({ form }: FieldsProps) {
  return (
    <UserSelect
      value={form.draft.user_id}
      error={form.errorOf("user_id")}
      onChange={(id) => form.edit({ user_id: id })}
    />
  );
}

function ReviewerFields({ form }: FieldsProps) {
  const [isNarrowed, { open: narrow }] = useDisclosure();
  return (
    <>
      <TextInput
        label="Email"
        description="The address that review sites report. All spellings of the mailbox are found."
        type="email"
        autoComplete="off"
        data-autofocus
        {...form.text("reviewer_email")}
      />
      <UserWithEmail
        email={form.draft.reviewer_email.trim()}
        onChoose={(id) => form.edit({ kind: "user", user_id: id, isUnderstood: false })}
      />
      {isNarrowed ? (
        <Narrowing form={form} />
      ) : (
        <div>
          <LinkButton onClick={narrow}>By ids of reviews, or at one company only</LinkButton>
        </div>
      )}
    </>
  );
}

/** Form fields that seldom are needed: reviews without an email, and the companies to which the search is limited. */
function Narrowing({ form }: FieldsProps) {
  const { partner_id: partnerId, account_id: accountId } = form.draft;
  return (
    <>
      <Textarea
        label="Ids of reviews"
        description="Instead of the email or besides it, for reviews without one. Up to 1,000, separated by spaces or lines."
        autosize
        {...form.text("review_ids")}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <CompanySelect
          label="Only at the partner"
          types={["partner"]}
          placeholder="Every partner"
          value={partnerId}
          error={form.errorOf("partner_id")}
          onChange={(partner) => form.edit({ partner_id: partner?.id })}
        />
        <CompanySelect
          label="Only at the account"
          types={["account"]}
          placeholder="Every account"
          value={accountId}
          error={form.errorOf("account_id")}
          onChange={(account) => form.edit({ account_id: account?.id })}
        />
      </SimpleGrid>
    </>
  );
}
