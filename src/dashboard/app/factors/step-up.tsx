import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import type { AskedProof } from "../session/asked-proof.ts";
import { useApi, useSessionState } from "../session/session.tsx";
import { useRefresh } from "../ui/pages.ts";
import { Loaded } from "../ui/states.tsx";
import { factorRequests, factorsOptions, methodsOf, type Proof } from "./data.ts";
import { ProofForm } from "./proof-form.tsx";

interface StepUpProps {
  readonly asked: AskedProof;
}

/** Asks the signed-in user for the proof of a second factor that a request waits for. */
export function Page({ asked }: StepUpProps) {
  const api = useApi();
  const factors = useQuery(factorsOptions(api));
  const { inBackground } = useRefresh(factorsOptions(api).queryKey);
  const prove = async (proof: Proof) => {
    await inBackground(factorRequests(api).stepUp(proof));
    asked.answer(true);
  };
  return (
    <Loaded query={factors}>
      {(own) =>
        own.factors.length === 0 ? (
          <NoFactor asked={asked} />
        ) : (
          <Stack>
            <Text size="sm">
              Confirm your identity with a second factor. The confirmation is valid for ten minutes.
            </Text>
            <ProofForm api={api} methods={methodsOf(own)} onProof={prove} />
          </Stack>
        )
      }
    </Loaded>
  );
}

/** Tells a user without a second factor how to go on: set one up on the page Security, or sign in again. */
function NoFactor({ asked: { isOfFactors, answer } }: StepUpProps) {
  const { signInAgain } = useSessionState();
  const [, navigate] = useLocation();
  const setUp = () => {
    answer(false);
    navigate("/security");
  };
  return (
    <Stack>
      <Text size="sm">
        {isOfFactors
          ? "You signed in more than ten minutes ago. Sign in again to add your first passkey or app. You then return to this page."
          : "Your company requires two-step verification for this, and you have not set it up."}
      </Text>
      <Group justify="flex-end">
        <Button variant="subtle" onClick={() => answer(false)}>
          Cancel
        </Button>
        {!isOfFactors && (
          <Button variant="default" onClick={setUp}>
            Set it up under Security
          </Button>
        )}
        <Button onClick={signInAgain} data-autofocus>
          Sign in again
        </Button>
      </Group>
    </Stack>
  );
}
