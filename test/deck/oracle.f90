! Reads decks as Fortran does, for comparison with deck/namelist.cpp and deck/deck.cpp.
!
!   oracle LIST OUTPUT     LIST holds one path a line
!
! For each file it reads the group &probe (every type, scalars and arrays) and the groups of a deck
! with the keys and defaults of deck/config.h, rewinding before each, and writes
!   file PATH
!   group NAME IOSTAT      0: read; what follows is what the variables hold then
!   KEY VALUE              integers in decimal, reals as the hexadecimal digits of their bits,
!                          logicals as T or F, strings in [], elements of arrays as KEY(I)
program oracle
  implicit none
  integer, parameter :: i8 = selected_int_kind(18), r8 = kind(1.0d0), width = 200
  integer :: list, deck, out, status, n

  integer(i8) :: i, j, ia(3)
  real(r8) :: x, y, xa(4)
  logical :: l, m, la(2)
  character(width) :: s, u, sa(3)
  namelist /probe/ i, j, ia, x, y, xa, l, m, la, s, u, sa

  character(width) :: class, tier
  character(width) :: name, device, comm, mpi_arrays, algorithms, attention, cuda_graph, find_largest, &
    find_largest_over, layout, machine, resume, init_from
  integer(i8) :: steps, warmup_steps, seed, find_largest_steps, check_replicas_every
  real(r8) :: duration_s, time_limit_s, watchdog_s
  logical :: deterministic, verify
  namelist /run/ name, class, tier, steps, warmup_steps, seed, device, comm, mpi_arrays, algorithms, attention, cuda_graph, &
    duration_s, time_limit_s, deterministic, verify, find_largest, find_largest_over, find_largest_steps, &
    layout, machine, resume, init_from, watchdog_s, check_replicas_every

  character(width) :: preset, family
  integer(i8) :: num_layers, hidden_size, num_attention_heads, num_kv_heads, ffn_hidden_size
  integer(i8) :: seq_length, vocab_size, vocab_multiple, num_params
  character(width) :: position_embedding
  real(r8) :: rotary_theta, dropout, init_std, layernorm_epsilon
  logical :: no_bias
  namelist /model/ preset, family, num_layers, hidden_size, num_attention_heads, num_kv_heads, &
    ffn_hidden_size, seq_length, vocab_size, vocab_multiple, position_embedding, rotary_theta, &
    no_bias, dropout, init_std, layernorm_epsilon, num_params

  integer(i8) :: data_parallel, tensor_parallel, pipeline_parallel, context_parallel
  integer(i8) :: zero_stage, zero_group, virtual_stages, stage_layers(256)
  logical :: sequence_parallel
  character(width) :: rank_order, pipeline_schedule, offload(3), offload_target, offload_update
  namelist /parallel/ data_parallel, tensor_parallel, pipeline_parallel, context_parallel, &
    sequence_parallel, rank_order, zero_stage, zero_group, pipeline_schedule, virtual_stages, &
    stage_layers, offload, offload_target, offload_update

  integer(i8) :: micro_batch_size, global_batch_size
  namelist /batch/ micro_batch_size, global_batch_size

  character(width) :: compute, parameters, gather, reduce, optimizer_state
  logical :: tf32, master_weights
  integer(i8) :: fp8_amax_history, fp8_margin
  real(r8) :: loss_scale, initial_loss_scale, min_loss_scale, loss_scale_growth, loss_scale_backoff
  integer(i8) :: loss_scale_window, loss_scale_hysteresis
  namelist /precision/ compute, parameters, gather, reduce, optimizer_state, tf32, master_weights, &
    fp8_amax_history, fp8_margin, loss_scale, initial_loss_scale, min_loss_scale, loss_scale_growth, &
    loss_scale_backoff, loss_scale_window, loss_scale_hysteresis

  character(width) :: activation_checkpointing
  integer(i8) :: checkpoint_every
  real(r8) :: device_memory_gib
  logical :: partition_checkpoints
  namelist /memory/ activation_checkpointing, checkpoint_every, partition_checkpoints, device_memory_gib

  real(r8) :: lr, beta1, beta2, epsilon, weight_decay, clip
  namelist /optimizer/ lr, beta1, beta2, epsilon, weight_decay, clip

  character(width) :: source, path
  real(r8) :: short_seq_prob
  namelist /data/ source, path, short_seq_prob

  character(width) :: lr_schedule, held_out_path
  integer(i8) :: lr_warmup_steps, lr_decay_steps, evaluate_every, evaluate_batches
  real(r8) :: lr_min, target_loss
  namelist /convergence/ lr_schedule, lr_warmup_steps, lr_decay_steps, lr_min, evaluate_every, evaluate_batches, &
    held_out_path, target_loss

  character(width) :: directory, dump, flops_convention
  real(r8) :: peak_tflops
  integer(i8) :: log_every, trace_step
  namelist /output/ directory, dump, flops_convention, peak_tflops, log_every, trace_step

  ! directory: that of output has been written by the time that this group is read
  integer(i8) :: every_steps, keep
  real(r8) :: every_s
  logical :: async
  namelist /checkpoint/ directory, every_steps, every_s, keep, async

  character(1000) :: list_path, out_path, deck_path

  call get_command_argument(1, list_path)
  call get_command_argument(2, out_path)
  open (newunit=list, file=trim(list_path), status='old', action='read')
  open (newunit=out, file=trim(out_path), status='replace', action='write')
  do
    read (list, '(a)', iostat=status) deck_path
    if (status /= 0) exit
    open (newunit=deck, file=trim(deck_path), status='old', action='read')
    write (out, '(2a)') 'file ', trim(deck_path)
    call set_defaults()
    call read_groups()
    close (deck)
    flush (out)  ! gfortran's library itself can crash on a damaged deck
  end do

contains

  subroutine set_defaults()
    i = -1; j = -1; ia = -1; x = -1; y = -1; xa = -1
    l = .false.; m = .true.; la = .false.; s = 'default'; u = 'default'; sa = 'default'

    name = 'gptbench'; class = ''; tier = 'as_is'
    steps = 10; warmup_steps = 2; seed = 1; device = 'auto'; comm = 'auto'
    mpi_arrays = 'auto'; algorithms = ''; attention = 'auto'; cuda_graph = 'auto'
    duration_s = 0; time_limit_s = 0; watchdog_s = 600; check_replicas_every = 0
    deterministic = .false.; verify = .true.; find_largest = 'none'; find_largest_over = 'all'; find_largest_steps = 30
    layout = 'given'; machine = ''
    resume = 'no'; init_from = ''
    preset = ''; family = 'gpt'; num_layers = 12; hidden_size = 768; num_attention_heads = 12
    num_kv_heads = 0; ffn_hidden_size = 0; seq_length = 1024; vocab_size = 50257
    position_embedding = 'auto'; rotary_theta = 10000; no_bias = .false.
    vocab_multiple = 1; dropout = 0; init_std = 0.02d0; layernorm_epsilon = 1d-5; num_params = 0
    data_parallel = 0; tensor_parallel = 1; pipeline_parallel = 1; context_parallel = 1
    sequence_parallel = .false.; rank_order = 'tp_cp_pp_dp'
    zero_stage = 0; zero_group = 0; pipeline_schedule = '1f1b'; virtual_stages = 1
    stage_layers = -1; offload = ''; offload_target = 'host'; offload_update = 'device'
    micro_batch_size = 1; global_batch_size = 0
    compute = 'fp32'; parameters = 'auto'; gather = 'auto'; reduce = 'fp32'; optimizer_state = 'fp32'
    tf32 = .false.; master_weights = .true.; fp8_amax_history = 1024; fp8_margin = 0
    loss_scale = 0; initial_loss_scale = 65536; min_loss_scale = 1; loss_scale_growth = 2
    loss_scale_backoff = 0.5d0; loss_scale_window = 2000; loss_scale_hysteresis = 1
    activation_checkpointing = 'none'; checkpoint_every = 1; device_memory_gib = 0
    partition_checkpoints = .false.
    lr = 6d-4; beta1 = 0.9d0; beta2 = 0.95d0; epsilon = 1d-8; weight_decay = 0.1d0; clip = 1
    source = 'synthetic'; path = ''; short_seq_prob = 0
    lr_schedule = 'constant'; lr_warmup_steps = 0; lr_decay_steps = 0; lr_min = 0
    evaluate_every = 0; evaluate_batches = 1; held_out_path = ''; target_loss = 0
    directory = ''; dump = 'none'; flops_convention = 'causal'; peak_tflops = 0; log_every = 0; trace_step = 0
    every_steps = 0; every_s = 0; keep = 2; async = .true.
  end subroutine

  subroutine begin(group)
    character(*), intent(in) :: group
    write (out, '(3a,i0)') 'group ', group, ' ', status
    rewind (deck)
  end subroutine

  subroutine read_groups()
    rewind (deck)
    read (deck, nml=probe, iostat=status)
    call begin('probe')
    call put_integer('i', i); call put_integer('j', j)
    call put_real('x', x); call put_real('y', y)
    call put_logical('l', l); call put_logical('m', m)
    call put_string('s', s); call put_string('u', u)
    do n = 1, 3
      call put_integer(element('ia'), ia(n)); call put_string(element('sa'), sa(n))
    end do
    do n = 1, 4
      call put_real(element('xa'), xa(n))
    end do
    do n = 1, 2
      call put_logical(element('la'), la(n))
    end do

    read (deck, nml=run, iostat=status)
    call begin('run')
    call put_string('name', name); call put_string('class', class); call put_string('tier', tier)
    call put_integer('steps', steps)
    call put_integer('warmup_steps', warmup_steps); call put_integer('seed', seed)
    call put_string('device', device); call put_string('comm', comm)
    call put_string('mpi_arrays', mpi_arrays); call put_string('algorithms', algorithms)
    call put_string('attention', attention); call put_string('cuda_graph', cuda_graph)
    call put_real('duration_s', duration_s)
    call put_real('time_limit_s', time_limit_s); call put_real('watchdog_s', watchdog_s)
    call put_logical('deterministic', deterministic)
    call put_logical('verify', verify)
    call put_integer('check_replicas_every', check_replicas_every); call put_string('find_largest', find_largest)
    call put_string('find_largest_over', find_largest_over)
    call put_integer('find_largest_steps', find_largest_steps)
    call put_string('layout', layout); call put_string('machine', machine)
    call put_string('resume', resume); call put_string('init_from', init_from)

    read (deck, nml=model, iostat=status)
    call begin('model')
    call put_string('preset', preset); call put_string('family', family)
    call put_integer('num_layers', num_layers); call put_integer('hidden_size', hidden_size)
    call put_integer('num_attention_heads', num_attention_heads)
    call put_integer('num_kv_heads', num_kv_heads)
    call put_integer('ffn_hidden_size', ffn_hidden_size)
    call put_integer('seq_length', seq_length); call put_integer('vocab_size', vocab_size)
    call put_integer('vocab_multiple', vocab_multiple)
    call put_string('position_embedding', position_embedding)
    call put_real('rotary_theta', rotary_theta); call put_logical('no_bias', no_bias)
    call put_real('dropout', dropout)
    call put_real('init_std', init_std); call put_real('layernorm_epsilon', layernorm_epsilon)
    call put_integer('num_params', num_params)

    read (deck, nml=parallel, iostat=status)
    call begin('parallel')
    call put_integer('data_parallel', data_parallel)
    call put_integer('tensor_parallel', tensor_parallel)
    call put_integer('pipeline_parallel', pipeline_parallel)
    call put_integer('context_parallel', context_parallel)
    call put_logical('sequence_parallel', sequence_parallel)
    call put_string('rank_order', rank_order)
    call put_integer('zero_stage', zero_stage); call put_integer('zero_group', zero_group)
    call put_string('pipeline_schedule', pipeline_schedule)
    call put_integer('virtual_stages', virtual_stages)
    do n = 1, size(stage_layers)
      call put_integer(element('stage_layers'), stage_layers(n))
    end do
    do n = 1, 3
      call put_string(element('offload'), offload(n))
    end do
    call put_string('offload_target', offload_target)
    call put_string('offload_update', offload_update)

    read (deck, nml=batch, iostat=status)
    call begin('batch')
    call put_integer('micro_batch_size', micro_batch_size)
    call put_integer('global_batch_size', global_batch_size)

    read (deck, nml=precision, iostat=status)
    call begin('precision')
    call put_string('compute', compute); call put_string('parameters', parameters)
    call put_string('gather', gather); call put_string('reduce', reduce)
    call put_string('optimizer_state', optimizer_state)
    call put_logical('tf32', tf32)
    call put_logical('master_weights', master_weights)
    call put_integer('fp8_amax_history', fp8_amax_history)
    call put_integer('fp8_margin', fp8_margin)
    call put_real('loss_scale', loss_scale); call put_real('initial_loss_scale', initial_loss_scale)
    call put_real('min_loss_scale', min_loss_scale)
    call put_real('loss_scale_growth', loss_scale_growth)
    call put_real('loss_scale_backoff', loss_scale_backoff)
    call put_integer('loss_scale_window', loss_scale_window)
    call put_integer('loss_scale_hysteresis', loss_scale_hysteresis)

    read (deck, nml=memory, iostat=status)
    call begin('memory')
    call put_string('activation_checkpointing', activation_checkpointing)
    call put_integer('checkpoint_every', checkpoint_every)
    call put_logical('partition_checkpoints', partition_checkpoints)
    call put_real('device_memory_gib', device_memory_gib)

    read (deck, nml=optimizer, iostat=status)
    call begin('optimizer')
    call put_real('lr', lr); call put_real('beta1', beta1); call put_real('beta2', beta2)
    call put_real('epsilon', epsilon); call put_real('weight_decay', weight_decay)
    call put_real('clip', clip)

    read (deck, nml=data, iostat=status)
    call begin('data')
    call put_string('source', source); call put_string('path', path)
    call put_real('short_seq_prob', short_seq_prob)

    read (deck, nml=convergence, iostat=status)
    call begin('convergence')
    call put_string('lr_schedule', lr_schedule)
    call put_integer('lr_warmup_steps', lr_warmup_steps); call put_integer('lr_decay_steps', lr_decay_steps)
    call put_real('lr_min', lr_min)
    call put_integer('evaluate_every', evaluate_every); call put_integer('evaluate_batches', evaluate_batches)
    call put_string('held_out_path', held_out_path); call put_real('target_loss', target_loss)

    read (deck, nml=output, iostat=status)
    call begin('output')
    call put_string('directory', directory); call put_string('dump', dump)
    call put_string('flops_convention', flops_convention)
    call put_real('peak_tflops', peak_tflops)
    call put_integer('log_every', log_every); call put_integer('trace_step', trace_step)

    directory = ''
    read (deck, nml=checkpoint, iostat=status)
    call begin('checkpoint')
    call put_string('directory', directory); call put_integer('every_steps', every_steps)
    call put_real('every_s', every_s); call put_integer('keep', keep)
    call put_logical('async', async)
  end subroutine

  function element(key) result(text)
    character(*), intent(in) :: key
    character(:), allocatable :: text
    character(8) :: index
    write (index, '(i0)') n
    text = key//'('//trim(index)//')'
  end function

  subroutine put_integer(key, value)
    character(*), intent(in) :: key
    integer(i8), intent(in) :: value
    write (out, '(2a,i0)') key, ' ', value
  end subroutine

  subroutine put_real(key, value)
    character(*), intent(in) :: key
    real(r8), intent(in) :: value
    write (out, '(2a,z16.16)') key, ' ', transfer(value, 0_i8)
  end subroutine

  subroutine put_logical(key, value)
    character(*), intent(in) :: key
    logical, intent(in) :: value
    write (out, '(2a,l1)') key, ' ', value
  end subroutine

  subroutine put_string(key, value)
    character(*), intent(in) :: key, value
    write (out, '(4a)') key, ' [', trim(value), ']'
  end subroutine

end program
