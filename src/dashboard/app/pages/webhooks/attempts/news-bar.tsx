import { Button } from "@mantine/core";

interface NewsBarProps {
  readonly isShown: boolean;
  readonly isPaused: boolean;
  readonly onPause: () => void;
  /** Goes to the newest row, and on. */
  readonly onShow: () => void;
  /** The words on the button that shows what has come; undefined if nothing has. */
  readonly news: string | undefined;
}

/** Stops and resumes a live list, and says what has come meanwhile. */
export function NewsBar({ isShown, isPaused, onPause, onShow, news }: NewsBarProps) {
  return (
    <div className="news">
      {isShown && (
        <Button size="xs" variant="default" onClick={isPaused ? onShow : onPause}>
          {isPaused ? "Resume updates" : "Pause updates"}
        </Button>
      )}
      <div aria-live="polite">
        {news !== undefined && (
          <Button size="xs" onClick={onShow}>
            {news}
          </Button>
        )}
      </div>
    </div>
  );
}
