import { useState } from 'react'
import { Button } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { useCan } from '../../app/session.tsx'
import { ReasonDialog } from '../../ui/reason-dialog.tsx'
import { showProblem } from '../../ui/toast.ts'

/** Pauses or resumes a queue for all workers. */
export function PauseButton({ queue, isPaused }: { queue: string; isPaused: boolean }) {
  const can = useCan()
  const queryClient = useQueryClient()
  const [isAsking, setAsking] = useState(false)
  const options = {
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['queues'] }),
    onError: showProblem,
  }
  const pause = useMutation({
    mutationFn: (reason: string) => api.pauseQueue({ queue, reason }),
    ...options,
  })
  const resume = useMutation({ mutationFn: () => api.resumeQueue({ queue }), ...options })
  if (!can('queue:pause')) return null
  if (isPaused)
    return (
      <Button
        variant="default"
        loading={resume.isPending}
        onClick={() => resume.mutate()}
        title="Workers run the letters of this queue again."
        aria-label={`Resume ${queue}`}
      >
        Resume
      </Button>
    )
  return (
    <>
      <Button
        variant="default"
        loading={pause.isPending}
        onClick={() => setAsking(true)}
        title="No letter of this queue runs until somebody resumes the queue. New failures are still stored."
        aria-label={`Pause ${queue}`}
      >
        Pause
      </Button>
      {isAsking && (
        <ReasonDialog
          title={`Pause ${queue}`}
          explanation="No letter of this queue runs until somebody resumes it, on any worker. New failures are still stored."
          action="Pause the queue"
          onClose={() => setAsking(false)}
          onConfirm={(reason) => {
            setAsking(false)
            pause.mutate(reason)
          }}
        />
      )}
    </>
  )
}
